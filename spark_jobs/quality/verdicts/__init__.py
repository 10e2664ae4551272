"""The verdict on a version: the version, the result of each rule, and the line that a person reads.

The evaluation of rules is in `spark_jobs.quality.fused` and `spark_jobs.quality.gx`.
"""

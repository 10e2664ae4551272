"""The verdict on a version: the version, the result of each rule, and the line that a person reads.

The evaluation of rules is in `millrace_spark.quality.fused` and `millrace_spark.quality.gx`.
"""

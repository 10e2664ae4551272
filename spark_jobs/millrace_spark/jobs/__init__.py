"""The entrypoints, one for each job.

The work itself lives in `millrace_spark.layers`.
"""

"""The entrypoints, one for each job.

The work itself lives in `spark_jobs.layers`.
"""

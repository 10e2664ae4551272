"""The only place that speaks Delta through Spark: tables, reads, merges, maintenance.

Which batch writes what is decided in `spark_jobs.protocol` and `spark_jobs.layers`.
"""

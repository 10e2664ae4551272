"""The only place that uses Delta through Spark: tables, reads, merges, maintenance.

`spark_jobs.protocol` and `spark_jobs.layers` decide which batch writes what.
"""

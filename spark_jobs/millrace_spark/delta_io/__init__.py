"""The only place that uses Delta through Spark: tables, reads, merges, maintenance.

`millrace_spark.protocol` and `millrace_spark.layers` decide which batch writes what.
"""

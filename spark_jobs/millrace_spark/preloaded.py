"""What a driver against a Spark Connect server needs, for a process that forks drivers.

It is used as `lakehouse_airflow.preloaded` is, and its rule holds here, too.
"""

# ruff: noqa: F401
import delta.connect
import pyspark.sql.connect.session

import millrace_spark.jobs.bronze_ingest
import millrace_spark.jobs.gold_aggregate
import millrace_spark.jobs.quality_gate
import millrace_spark.jobs.silver_merge

"""What a driver against a Spark Connect server needs, for a process that forks drivers.

It is used as `lakehouse_airflow.preloaded` is, and its rule holds here, too.
"""

# ruff: noqa: F401
import delta.connect
import pyspark.sql.connect.session

import spark_jobs.jobs.bronze_ingest
import spark_jobs.jobs.gold_aggregate
import spark_jobs.jobs.quality_gate
import spark_jobs.jobs.silver_merge

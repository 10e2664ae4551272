"""The job whose CPU-seconds are the unit of a suite's cost: a loop in Python, and small queries of a new Spark."""

from __future__ import annotations

from hashlib import sha256

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

LOOPS = 2_000_000


def main() -> None:
    """Run the job."""
    digest = b""
    for _ in range(LOOPS):
        digest = sha256(digest).digest()
    settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    for number in range(10):
        rows = spark.range(1000 * (number + 1)).groupBy((F.col("id") % (7 + number)).alias("key")).count()
        assert rows.count() == 7 + number
    spark.stop()


if __name__ == "__main__":
    main()

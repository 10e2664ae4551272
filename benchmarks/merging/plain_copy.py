"""Copy the orders of a silver table to a plain Delta table: the same rows in as many files with the same keys.

spark-submit plain_copy.py TABLE COPY RANGES     RANGES: JSON list of the least and the greatest key of each file
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.merging.orders import COLUMNS


def main(spark: SparkSession, table: str, copy: str, ranges: str) -> None:
    """Append one file after another, with default settings."""
    orders = spark.read.format("delta").load(table).select(*COLUMNS)
    for low, high in json.loads(ranges):
        of_file = orders.where(F.col("id").between(low, high)).coalesce(1)
        of_file.write.format("delta").mode("append").save(copy)


if __name__ == "__main__":
    main(SparkSession.builder.appName("copy").getOrCreate(), *sys.argv[1:])

"""Plain MERGE statements, one after the other in one session of plain Spark.

spark-submit plain_merges.py WORK COSTS     WORK: JSON lines of `name`, `lake` and the `clauses` of the MERGE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.cost import noted
from benchmarks.merging.orders import CHANGED, COLUMNS


def main(spark: SparkSession, work: Path, costs: Path) -> None:
    """Run them, and note what each cost."""
    for line in work.read_text().splitlines():
        one = json.loads(line)
        with noted(costs, one["name"]):
            _merge(spark, one["lake"], one["clauses"])


def _merge(spark: SparkSession, lake: str, clauses: str) -> None:
    events = spark.read.format("delta").load(f"{lake}/bronze/orders")
    changed = events.where(F.col("_interval_start") == F.lit(CHANGED).cast("timestamp"))
    changed.select(*COLUMNS).createOrReplaceTempView("s")
    spark.sql(f"MERGE INTO delta.`{lake}/silver/orders` t USING s ON t.id = s.id {clauses}").collect()


if __name__ == "__main__":
    main(SparkSession.builder.appName("merges").getOrCreate(), *map(Path, sys.argv[1:]))

"""Plain MERGE statements, one after another in one session of plain Spark.

spark-submit plain_merges.py WORK COSTS     WORK: JSON lines of `name`, `lake` and the `clauses` of the MERGE

A target of Millrace's has more columns than N's: the MERGE writes them as well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.cost import noted
from benchmarks.merging.orders import CHANGED, COLUMNS

_OWN = {
    "_sequence": "struct(ts) AS _sequence",
    "_source_hash": f"xxhash64({', '.join(COLUMNS)}) AS _source_hash",
    "_content_hash": f"xxhash64({', '.join(COLUMNS)}) AS _content_hash",
    "_stream": "'plain' AS _stream",
    "_batch_seq": "2L AS _batch_seq",
    "_batch_token": "'plain' AS _batch_token",
}
"""Column of Millrace's silver table -> a plain expression with the same cost."""


def main(spark: SparkSession, work: Path, costs: Path) -> None:
    """Run the merges, and note their costs."""
    for line in work.read_text().splitlines():
        one = json.loads(line)
        with noted(costs, one["name"]):
            _merge(spark, one["lake"], one["clauses"])


def _merge(spark: SparkSession, lake: str, clauses: str) -> None:
    target = f"delta.`{lake}/silver/orders`"
    events = spark.read.format("delta").load(f"{lake}/bronze/orders")
    changed = events.where(F.col("_interval_start") == F.lit(CHANGED).cast("timestamp"))
    changed.selectExpr(*(_OWN.get(name, name) for name in spark.table(target).columns)).createOrReplaceTempView("s")
    spark.sql(f"MERGE INTO {target} t USING s ON t.id = s.id {clauses}").collect()


if __name__ == "__main__":
    main(SparkSession.builder.appName("merges").getOrCreate(), *map(Path, sys.argv[1:]))

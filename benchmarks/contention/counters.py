"""The table of a heat's writers: counters in partitions, which count each merge."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from millrace_spark.delta_io.tables import TableShape, ensure_table
from millrace_spark.runtime.session import own_session

PARTITIONS = 8
COUNTERS, HIT = 20_000, 200
"""Rows of a partition, and the number of rows that a merge increments."""

SHAPE = TableShape(columns={"part": "int", "k": "bigint", "hits": "bigint"}, partitioned_by=("part",))


def create(path: Path) -> None:
    """Create the table, with all counters at zero."""
    ensure_table(own_session, path, SHAPE)
    with own_session({}) as session:
        numbers = session.range(PARTITIONS * COUNTERS).selectExpr(
            f"CAST(id % {PARTITIONS} AS INT) AS part", f"id DIV {PARTITIONS} AS k", "0L AS hits"
        )
        numbers.write.format("delta").mode("append").save(str(path))


def hit(session: SparkSession, path: Path, part: int) -> None:
    """Increment some counters of a partition, in one commit."""
    session.sql(
        f"MERGE INTO delta.`{path}` AS t USING (SELECT id AS k FROM range({HIT})) AS s "
        f"ON t.part = {part} AND t.k = s.k WHEN MATCHED THEN UPDATE SET hits = t.hits + 1"
    ).collect()


def hits(path: Path) -> int:
    """Return the number of merges by the counters."""
    with own_session({}) as session:
        [row] = session.read.format("delta").load(str(path)).selectExpr("sum(hits) AS hits").collect()
    return int(row.hits) // HIT

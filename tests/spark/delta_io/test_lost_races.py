"""A MERGE that another writer's commit overtakes: who won is told by that commit, and the merge is tried again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from include.contracts.contention import LostRace
from include.contracts.job_report import RowFates
from include.control.batch import BatchSources, Intent, Stream, StreamPosition, Winner
from include.control.ledger import Ledger
from include.paths import LakehousePaths
from spark_jobs.delta_io.batches import BatchPlan, BatchRequest, BatchWriter, Closing
from spark_jobs.runtime.session import own_session
from tests.support.delta_tables import day

TABLE = "silver.orders"
RIVAL = "backfill__2013-01-01"


class Overtaken:
    """A batch that updates one row; while its first MERGE reads it, somebody else appends another one."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.tries = 0

    def plan(self, position: StreamPosition) -> BatchPlan:
        return BatchPlan(BatchSources(files=1))

    def write(self, session: Any, intent: Intent, plan: BatchPlan) -> None:
        self.tries += 1
        session.udf.register("read_slowly", appends_once(str(self.table)), "int")
        session.sql(
            f"MERGE INTO delta.`{self.table}` AS t USING (SELECT read_slowly(1) AS n, 10 AS amount) AS s ON t.n = s.n "
            "WHEN MATCHED THEN UPDATE SET amount = s.amount"
        ).collect()

    def close(self, winner: Winner) -> Closing:
        return Closing(RowFates(read=1, applied=1, updated=1))


def appends_once(table: str) -> Callable[[int], int]:
    """A function that gives back what it is given, and appends a row to a table that has only one version with rows."""
    told = json.dumps({"millrace": {"run_id": RIVAL}})

    def read_slowly(n: int) -> int:
        import pyarrow as pa
        from deltalake import CommitProperties, DeltaTable, write_deltalake

        if DeltaTable(table).version() == 1:
            row = pa.table({"n": pa.array([2], pa.int32()), "amount": pa.array([2], pa.int32())})
            said = CommitProperties(custom_metadata={"userMetadata": told})
            write_deltalake(table, row, mode="append", commit_properties=said)
        return n

    return read_slowly


def test_the_winner_is_the_one_whose_commit_came_between(spark: SparkSession, lake: Path) -> None:
    paths = LakehousePaths(lake)
    table = paths.table(TABLE)
    spark.sql(f"CREATE TABLE delta.`{table}` (n INT, amount INT) USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 1)")
    work, request = Overtaken(table), BatchRequest(table, Stream(TABLE), day(), "scheduled__2013-01-01", "5bec")

    result = BatchWriter(request, work, Ledger(paths), own_session).run_unleased()

    won = LostRace(conflict="ConcurrentAppendException", operation="WRITE", run_id=RIVAL, version=2)
    assert result.lost == [won]
    assert (result.committed, result.attempts, work.tries) == (True, 1, 2)
    rows = spark.read.format("delta").load(str(table)).collect()
    assert sorted((row.n, row.amount) for row in rows) == [(1, 10), (2, 2)]

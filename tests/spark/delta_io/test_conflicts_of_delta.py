"""What Delta raises when a commit comes between a write's reading and its own commit, and that each write ends right.

Every pair runs for real: a MERGE, an append, a `replaceWhere`, an overwrite of Spark, and somebody else's commit by
delta-rs while it reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from millrace.contracts.job.report import RowCounts
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import BatchSources, Intent, Stream, StreamPosition, Winner
from millrace.paths import LakehousePaths
from millrace_spark.delta_io.conflict_policy import Conflict
from millrace_spark.delta_io.row_writes import append, replace_where
from millrace_spark.protocol.batches import BatchPlan, BatchRequest, BatchResult, BatchWriter, Closing
from millrace_spark.runtime.session import own_session
from tests.support.ledger.delta_tables import day, intent_of
from tests.support.silver.conflicting_commits import (
    FIRST_VERSION,
    OTHER_RUN,
    ConflictingCommit,
    append_another_key,
    append_same_key,
    commit_while_reading,
    create_orders,
    delete_row,
    delete_row_of_other_file,
    join_files,
    pickle_by_value,
    set_property,
    take_number,
    upgrade_protocol,
)

TABLE = "silver.orders"
STREAM = Stream(TABLE)
Rows = list[tuple[int, int]]
Write = Callable[[SparkSession, Path], Any]

pickle_by_value()


def appended(session: SparkSession, table: Path) -> None:
    append(session.sql("SELECT read_slowly(4) AS n, 4 AS amount"), table)


def merged(session: SparkSession, table: Path) -> None:
    session.sql(
        f"MERGE INTO delta.`{table}` AS t USING (SELECT read_slowly(1) AS n, 10 AS amount) AS s ON t.n = s.n "
        "WHEN MATCHED THEN UPDATE SET amount = s.amount WHEN NOT MATCHED THEN INSERT *"
    ).collect()


def replaced(session: SparkSession, table: Path) -> None:
    replace_where(session.sql("SELECT read_slowly(1) AS n, 10 AS amount"), table, "n = 1")


def overwritten(session: SparkSession, table: Path) -> None:
    replace_where(session.sql("SELECT read_slowly(1) AS n, 10 AS amount"), table, "true")


class Overtaken:
    """A batch of one such write."""

    def __init__(self, table: Path, write: Write, other_commits: Sequence[ConflictingCommit]) -> None:
        self.table = table
        self._write = write
        self._other_commits = other_commits
        self.tries = 0

    def plan(self, position: StreamPosition) -> BatchPlan:
        return BatchPlan(BatchSources(files=1))

    def write(self, session: Any, intent: Intent, plan: BatchPlan) -> None:
        self.tries += 1
        session.udf.register("read_slowly", commit_while_reading(self._other_commits, str(self.table)), "int")
        self._write(session, self.table)

    def close(self, winner: Winner) -> Closing:
        grown = table_rows(self.table, winner.version) - table_rows(self.table, winner.version - 1)
        return Closing(RowCounts(inserted=max(grown, 0), deleted=max(-grown, 0)))


class Orders:
    """A table of two orders in two files, and a batch into it that somebody overtakes."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.paths = LakehousePaths(root)
        self.path = self.paths.table(TABLE)
        create_orders(str(self.path))

    def run(self, write: Write, *other_commits: ConflictingCommit) -> tuple[BatchResult, int]:
        """How the batch ended, and how often it was written; each of the other commits overtakes one try."""
        work = Overtaken(self.path, write, other_commits)
        request = BatchRequest(self.path, STREAM, day(), "scheduled__2013-01-01", "5bec", lambda: day().end)
        return BatchWriter(request, work, Ledger(self.paths), own_session).run_unleased(), work.tries

    def rows(self) -> Rows:
        return sorted((row["n"], row["amount"]) for row in DeltaTable(str(self.path)).to_pyarrow_table().to_pylist())

    def thrown_away(self) -> set[str]:
        """The data files that were written and never committed."""
        log = (Path(str(self.path)) / "_delta_log").glob("*.json")
        actions = [json.loads(line) for commit in log for line in commit.read_text().splitlines()]
        written = {file.name for file in Path(str(self.path)).glob("*.parquet")}
        return written - {action["add"]["path"] for action in actions if "add" in action}


@pytest.fixture
def orders(spark: SparkSession, lake: Path) -> Orders:
    return Orders(spark, lake)


APPEND, DELETE_READ = Conflict.CONCURRENT_APPEND, Conflict.CONCURRENT_DELETE_READ
METADATA, PROTOCOL = Conflict.METADATA_CHANGED, Conflict.PROTOCOL_CHANGED


CASES = [
    (appended, set_property, METADATA, [(1, 1), (2, 2), (4, 4)]),
    (appended, append_same_key, None, [(1, 1), (1, 5), (2, 2), (4, 4)]),
    (appended, delete_row, None, [(2, 2), (4, 4)]),
    (appended, join_files, None, [(1, 1), (2, 2), (4, 4)]),
    (appended, upgrade_protocol, PROTOCOL, [(1, 1), (2, 2), (4, 4)]),
    (merged, join_files, APPEND, [(1, 10), (2, 2)]),
    (merged, delete_row_of_other_file, DELETE_READ, [(1, 10)]),
    (replaced, append_same_key, APPEND, [(1, 10), (2, 2)]),
    (replaced, append_another_key, APPEND, [(1, 10), (2, 2), (3, 3)]),
    (replaced, delete_row, DELETE_READ, [(1, 10), (2, 2)]),
    (replaced, join_files, APPEND, [(1, 10), (2, 2)]),
    (replaced, set_property, METADATA, [(1, 10), (2, 2)]),
    (overwritten, append_another_key, APPEND, [(1, 10)]),
    (overwritten, delete_row, DELETE_READ, [(1, 10)]),
    (overwritten, join_files, APPEND, [(1, 10)]),
    (overwritten, upgrade_protocol, PROTOCOL, [(1, 10)]),
]


def test_a_batch_that_is_overtaken_at_each_try_loses_by_each_conflict_and_ends_in_the_right_rows(
    orders: Orders,
) -> None:
    batch = intent_of(table_id(orders.path), stream=STREAM)
    same_number = take_number(batch.app_id, batch.user_metadata())
    result, tries = orders.run(merged, append_another_key, delete_row, set_property, upgrade_protocol, same_number)

    conflicts = [APPEND, DELETE_READ, METADATA, PROTOCOL, Conflict.CONCURRENT_TRANSACTION]
    assert [(race.conflict, race.version) for race in result.lost] == [
        (conflict.value, FIRST_VERSION + place) for place, conflict in enumerate(conflicts, start=1)
    ]
    assert [race.run_id for race in result.lost] == [*[OTHER_RUN] * 4, "run-1"]
    assert result.lost[-1].operation == "WRITE"
    assert (result.committed, result.attempts, tries) == (True, 4, 6), "three of the conflicts void its plan"
    assert result.winner is not None
    assert result.winner.batch_seq == 2, "its number was taken"
    assert orders.rows() == [(1, 10), (2, 2), (3, 3), (3, 3)]
    assert orders.thrown_away()


@pytest.mark.faults
@pytest.mark.parametrize(("write", "other_commit", "conflict", "rows"), CASES)
def test_a_batch_that_is_overtaken_ends_in_the_right_rows(
    orders: Orders, write: Write, other_commit: ConflictingCommit, conflict: Conflict | None, rows: Rows
) -> None:
    result, tries = orders.run(write, other_commit)

    commits = DeltaTable(str(orders.path)).history()
    versions = [commit["version"] for commit in commits if OTHER_RUN in commit.get("userMetadata", "")]
    assert max(versions) == FIRST_VERSION + 1, "the other one was first"
    assert [race.conflict for race in result.lost] == ([conflict.value] if conflict else [])
    assert (result.committed, tries) == (True, 2 if conflict else 1)
    assert {(race.run_id, race.version) for race in result.lost} <= {(OTHER_RUN, FIRST_VERSION + 1)}
    assert orders.rows() == rows
    assert bool(orders.thrown_away()) == (tries > 1), "who does not have to write again keeps its files"


@pytest.mark.faults
@pytest.mark.parametrize("write", [appended, replaced, overwritten])
def test_whose_number_was_taken_plans_again(orders: Orders, write: Write) -> None:
    batch = intent_of(table_id(orders.path), stream=STREAM)
    result, tries = orders.run(write, take_number(batch.app_id, batch.user_metadata()))

    assert [race.conflict for race in result.lost] == [Conflict.CONCURRENT_TRANSACTION.value]
    assert (result.attempts, tries) == (2, 2)
    assert result.winner is not None
    assert result.winner.batch_seq == 2

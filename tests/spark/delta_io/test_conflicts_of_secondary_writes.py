"""Secondary writes and schema changes meet real conflicting commits and end with the right rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import Stream, Winner
from millrace.control.log.delta_log import commits_after
from millrace.control.log.stored_tables import open_table
from millrace_spark.delta_io import contest
from millrace_spark.delta_io.conflict_policy import Conflict
from millrace_spark.delta_io.row_writes import append
from millrace_spark.delta_io.tables import OpenSession, TableShape, ensure_table
from millrace_spark.protocol.secondary import SecondaryTable, write_once
from millrace_spark.runtime.session import own_session
from tests.support.ledger.delta_tables import intent_of
from tests.support.silver.conflicting_commits import (
    FIRST_VERSION,
    ConflictingCommit,
    add_orders,
    commit_while_reading,
    delete_row_of_other_file,
    pickle_by_value,
    set_property,
    take_number,
    upgrade_protocol,
)

NAME, STREAM = "silver_quarantine.orders", Stream("silver.orders")
SHAPE = TableShape(columns={"n": "int", "amount": "int"})
START = [(1, 1), (2, 2)]
METADATA, PROTOCOL = Conflict.METADATA_CHANGED, Conflict.PROTOCOL_CHANGED
AT_ONCE, ENOUGH = 4, 20
"""Drivers that alter a table at the same moment; how often they try to be in each other's way."""

pickle_by_value()
pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def secondary(tmp_path: Path) -> SecondaryTable:
    """A secondary table with two rows in two files."""
    table = SecondaryTable(NAME, tmp_path / "quarantine", SHAPE)
    ensure_table(own_session, table.path, SHAPE)
    add_orders(str(table.path))
    return table


def winner_of(table: SecondaryTable) -> Winner:
    return Winner(intent=intent_of(table_id(table.path), stream=STREAM), version=1)


def slowly(other_commit: ConflictingCommit, table: Path) -> Callable[[SparkSession], None]:
    """A write of one row, during which another writer commits."""

    def write(session: SparkSession) -> None:
        session.udf.register("read_slowly", commit_while_reading([other_commit], str(table)), "int")
        append(session.sql("SELECT read_slowly(4) AS n, 4 AS amount"), table)

    return write


def rows(table: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in open_table(table).to_pyarrow_table().to_pylist())


def lost(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The conflicts of the races that were lost, as the log tells them to whoever is on call."""
    told = [record.args for record in caplog.records if record.name == contest.__name__]
    return [str(race.conflict) for _, race in told]


@pytest.mark.parametrize(
    ("other_commit", "conflict", "left"),
    [
        (set_property, METADATA, [*START, (4, 4)]),
        pytest.param(upgrade_protocol, PROTOCOL, [*START, (4, 4)], marks=pytest.mark.faults),
        pytest.param(delete_row_of_other_file, None, [(1, 1), (4, 4)], marks=pytest.mark.faults),
    ],
)
def test_a_secondary_write_commits_once_whatever_commits_between(
    secondary: SecondaryTable,
    caplog: pytest.LogCaptureFixture,
    other_commit: ConflictingCommit,
    conflict: Conflict | None,
    left: list[tuple[int, int]],
) -> None:
    write_once(own_session, secondary, winner_of(secondary), slowly(other_commit, secondary.path))
    assert open_table(secondary.path).version() == FIRST_VERSION + 2, "both have committed"
    assert lost(caplog) == ([conflict.value] if conflict else [])
    assert rows(secondary.path) == left


def test_a_secondary_write_that_another_writer_did_is_done(
    secondary: SecondaryTable, caplog: pytest.LogCaptureFixture
) -> None:
    winner = winner_of(secondary)
    same = take_number(winner.intent.secondary_app_id(secondary.name), winner.intent.user_metadata())
    write_once(own_session, secondary, winner, slowly(same, secondary.path))
    assert open_table(secondary.path).version() == FIRST_VERSION + 1, "only the other one has committed"
    assert rows(secondary.path) == [*START, (3, 3)]
    assert lost(caplog) == [], "nothing was lost: it is there"


@pytest.fixture
def drivers(spark: SparkSession) -> Iterator[list[OpenSession]]:
    """Several, each with a session of its own; a thread cannot open one, for it listens to signals."""
    with ExitStack() as opened:
        sessions = [opened.enter_context(own_session({})) for _ in range(AT_ONCE)]
        yield [lambda _conf, session=session: nullcontext(session) for session in sessions]


def test_all_drivers_that_alter_a_table_at_once_succeed(
    drivers: list[OpenSession], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, asked = tmp_path / "orders", dict[str, str]()
    ensure_table(own_session, table, SHAPE)
    for attempt in range(ENOUGH):
        wanted = [{f"millrace.asked-{attempt}": "yes", f"millrace.by-{name}": str(attempt)} for name in range(AT_ONCE)]
        at_once(drivers, table, [TableShape(columns=SHAPE.columns, properties=one) for one in wanted])
        asked.update({key: value for one in wanted for key, value in one.items()})
        if lost(caplog):
            break
    assert set(lost(caplog)) == {METADATA}
    stated = open_table(table).metadata().configuration
    assert {key: stated.get(key) for key in asked} == asked


@pytest.mark.faults
def test_drivers_that_add_columns_at_once_add_each_once(
    drivers: list[OpenSession], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, columns = tmp_path / "orders", dict(SHAPE.columns)
    ensure_table(own_session, table, SHAPE)
    for attempt in range(1, ENOUGH + 1):
        new = {f"c{attempt}": "string", f"d{attempt}": "bigint"}
        columns.update(new)
        at_once(drivers, table, AT_ONCE * [TableShape(columns=dict(columns))])
        assert [field.name for field in open_table(table).schema().fields] == list(columns)
        added = [commit for commit in commits_after(table, 0) if "ADD COLUMNS" in commit.operation]
        assert len(added) == attempt, "one statement was enough"
        if lost(caplog):
            break
    assert set(lost(caplog)) == {METADATA}


def at_once(drivers: list[OpenSession], table: Path, shapes: list[TableShape]) -> None:
    """Each driver makes the table as one of the shapes has it."""
    with ThreadPoolExecutor(len(drivers)) as threads:
        asked = [threads.submit(ensure_table, one, table, shape) for one, shape in zip(drivers, shapes, strict=True)]
        for one in asked:
            one.result()

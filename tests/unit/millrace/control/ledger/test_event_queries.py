"""Queries of an events table return the same as a list of events, and read each data file once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.control.events import event_files
from millrace.control.events.conditions import Span
from millrace.control.ledger import ops_table
from millrace.control.ledger.ops_table import FILES_WORTH_COMPACTING, EventQuery, OpsTable
from millrace.errors import TornLogError

EVENTS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("table", pa.string()),
        ("token", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("number", pa.int64()),
        ("batch_seq", pa.int64()),
        ("path", pa.string()),
    ]
)
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
TABLE = "bronze.orders"
MORE_THAN_A_BATCH = 12_000


@dataclass(frozen=True)
class CountingQuery(EventQuery):
    """A query that counts the events that it reads."""

    batch_sizes: list[int] = field(default_factory=list, compare=False)

    def evaluate(self, events: Iterator[pa.RecordBatch]) -> pa.Table:
        def counted() -> Iterator[pa.RecordBatch]:
            for batch in events:
                self.batch_sizes.append(len(batch))
                yield batch

        return super().evaluate(counted())


def event(number: int, token: str = "t", kind: str = "planned", table: str = TABLE) -> dict[str, Any]:
    at = NOON + timedelta(seconds=number)
    columns = {"recorded_at": at, "event": kind, "table": table, "token": token, "batch_seq": None, "path": None}
    return {**columns, "columns": ["x", token], "number": number}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ops" / "events"


def lose_data(path: Path) -> None:
    """Remove the content of the data files, so that every read fails."""
    files = [file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts]
    assert files
    for file in files:
        file.unlink()


PATHS = ["", "a", "a/b", "a/é😀", "b", "long/" * 60, "long/" * 60 + "x", "\U0010ffff"]
ROWS = st.builds(
    lambda minute, batch, path, kind, table: {
        **event(0, token=f"t{minute % 3}", kind=kind, table=table),
        "recorded_at": NOON + timedelta(minutes=minute, microseconds=minute),
        "batch_seq": batch,
        "path": path,
    },
    st.integers(0, 200_000),
    st.none() | st.integers(0, 3_000),
    st.none() | st.sampled_from(PATHS),
    st.sampled_from(["planned", "failed"]),
    st.sampled_from([TABLE, TABLE, TABLE, "bronze.other"]),
)


def span(column: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    ends = st.builds(Span, st.none() | values, st.none() | values)
    return st.fixed_dictionaries({}, optional={column: ends | st.sets(values, max_size=3)})


CONDITIONS = st.builds(
    lambda *parts: {column: condition for part in parts for column, condition in part.items()},
    span("batch_seq", st.integers(0, 3_000)),
    span("path", st.sampled_from(PATHS)),
    span("recorded_at", st.builds(lambda at: NOON + timedelta(minutes=at, microseconds=at), st.integers(0, 200_000))),
    st.sampled_from([{}, {"event": ["failed"]}]),
)


def meets(row: dict[str, Any], conditions: dict[str, Any]) -> bool:
    """Whether an event meets the conditions, by a simple model."""
    for column, condition in conditions.items():
        if (value := row[column]) is None:
            return False
        if not isinstance(condition, Span):
            if value not in condition:
                return False
        elif (condition.least is not None and value < condition.least) or (
            condition.greatest is not None and value > condition.greatest
        ):
            return False
    return True


@settings(max_examples=40, deadline=None)
@given(
    commits=st.lists(st.lists(ROWS, max_size=4), max_size=5),
    compacted=st.integers(0, 5),
    conditions=CONDITIONS,
    columns=st.sampled_from([(), ("number",), ("columns", "number"), ("token", "recorded_at")]),
    upto=st.none() | st.integers(0, 3_000),
)
def test_queries_return_the_same_as_a_list_of_events(
    commits: list[list[dict[str, Any]]],
    compacted: int,
    conditions: dict[str, Any],
    columns: tuple[str, ...],
    upto: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("ops") / "events"
    events, reader, all_rows = OpsTable(path, EVENTS), OpsTable(path, EVENTS), list[dict[str, Any]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops_table, "FILES_WORTH_COMPACTING", 1)
        patch.setattr(event_files, "_ROW_GROUP_SIZE", 2)
        for at, some in enumerate(commits):
            events.append(some)
            if at + 1 == compacted:
                events.compact(TABLE)
            all_rows += [row for row in some if row["table"] == TABLE]
            planned = [row for row in all_rows if row["event"] == "planned"]
            require_same_rows(
                reader.events(TABLE, columns, event="planned"),
                [{name: row[name] for name in columns or EVENTS.names} for row in planned],
            )
    expected = [row for row in all_rows if meets(row, conditions)]
    assert events.find(TABLE, **conditions) == expected, "in the order of the commits, whatever the clocks said"
    read = [row for file in events.results(TABLE, EventQuery(EVENTS), **conditions) for row in file.to_pylist()]
    assert all(row in read for row in expected)
    until = None if upto is None else NOON + timedelta(minutes=66 * upto)
    for column, end in (("batch_seq", upto), ("recorded_at", until)):
        below = [row for row in all_rows if meets(row, {column: Span(None, end), "event": ["failed"]})]
        found = events.descending(TABLE, column, ("batch_seq", "recorded_at"), end, event=["failed"])
        newest_first = sorted(reversed(below), key=lambda row: row[column], reverse=True)
        assert list(found) == [{name: row[name] for name in ("batch_seq", "recorded_at")} for row in newest_first]


def require_same_rows(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected)
    assert all(found.count(row) == expected.count(row) for row in expected)


def test_data_files_without_wanted_events_are_not_read_and_no_file_is_read_twice_by_a_query(path: Path) -> None:
    events, query = OpsTable(path, EVENTS), CountingQuery(EVENTS)
    pool = pa.default_memory_pool().backend_name
    for number in (1, 2):
        row = {**event(number), "batch_seq": number, "path": f"a/{number}"}
        events.append([row, {**row, "event": "loaded"}])
        events.append([event(number, table="bronze.other")])
        events.results(TABLE, query)
        assert query.batch_sizes == [2] * number
        assert len(events.events(TABLE, event="planned")) == number
    lose_data(path)
    new = {**event(3, kind="failed"), "batch_seq": 3, "path": "b/1"}
    events.append([new])
    assert sorted(map(len, events.results(TABLE, query))) == [1, 2, 2]
    assert [row["number"] for row in events.events(TABLE, event="planned")] == [1, 2]
    for conditions in ({"event": ["failed"]}, {"batch_seq": Span(least=3)}, {"path": ["a/3", "b/1"]}):
        assert events.find(TABLE, **conditions) == [new]
    assert next(events.descending(TABLE, "batch_seq", ("path",), event=["failed"]))["path"] == "b/1"
    assert len(events.results(TABLE, CountingQuery(EVENTS), path=["b/1"])) == 1
    with pytest.raises(TornLogError, match="a file of the ledger, cannot be read"):
        events.find(TABLE, batch_seq=[2])
    assert pa.default_memory_pool().backend_name == pool, "reading has an allocator of its own, also after an error"


def test_a_large_data_file_is_read_in_batches_and_results_of_compacted_files_are_dropped(path: Path) -> None:
    events, query = OpsTable(path, EVENTS), CountingQuery(EVENTS)
    events.append([event(number) for number in range(MORE_THAN_A_BATCH)])
    for number in range(FILES_WORTH_COMPACTING - 2):
        events.append([event(number)])
    before = events.results(TABLE, query)
    assert len(before) == FILES_WORTH_COMPACTING - 1
    assert sum(query.batch_sizes) == MORE_THAN_A_BATCH + FILES_WORTH_COMPACTING - 2
    other = OpsTable(path, EVENTS)
    other.append([event(0)])
    other.compact(TABLE)
    query.batch_sizes.clear()
    after = events.results(TABLE, query)
    assert len(after) == len(DeltaTable(str(path)).file_uris()) == 1
    assert sum(query.batch_sizes) == MORE_THAN_A_BATCH + FILES_WORTH_COMPACTING - 1
    assert max(query.batch_sizes) < MORE_THAN_A_BATCH / 2

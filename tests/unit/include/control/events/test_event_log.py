"""Millrace and delta-rs read and write the same log of an `ops` table."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from include.control.events.event_log import EventLog

SCHEMA = pa.schema(
    [("recorded_at", pa.timestamp("us", tz="UTC")), ("table", pa.string()), ("batch_seq", pa.int64())],
)
AT = datetime(2026, 3, 1, 12, 30, 15, 123456, UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a lake, 100% übrig" / "ops" / "events"


def log_of(path: Path) -> EventLog:
    def create() -> None:
        DeltaTable.create(str(path), SCHEMA, mode="ignore", partition_by=["table"])

    return EventLog(path, ["recorded_at", "batch_seq"], create)


def events(*numbers: int, table: str = "silver.flights") -> pa.Table:
    return pa.Table.from_pylist([{"recorded_at": AT, "table": table, "batch_seq": one} for one in numbers], SCHEMA)


def seen(log: EventLog) -> set[str]:
    return {str(file.path) for file in log.files()}


def seen_by_delta_rs(path: Path) -> set[str]:
    return set(map(unquote, DeltaTable(str(path)).file_uris()))


def test_delta_rs_and_millrace_read_the_commits_of_each_other(path: Path) -> None:
    writer, reader = log_of(path), log_of(path)
    assert reader.files() == []
    for number in range(3):
        assert writer.append(events(number, number + 10)) == number + 1
        assert seen(writer) == seen(reader) == seen(log_of(path)) == seen_by_delta_rs(path)
    stored = DeltaTable(str(path))
    assert sorted(stored.to_pyarrow_table()["batch_seq"].to_pylist()) == [0, 1, 2, 10, 11, 12]
    [added, *_] = pa.table(stored.get_add_actions(flatten=True)).sort_by("min.batch_seq").to_pylist()
    assert (added["num_records"], added["min.batch_seq"], added["max.batch_seq"]) == (2, 0, 10)
    assert added["max.recorded_at"] == AT
    stored.optimize.compact()
    assert seen(reader) == seen(log_of(path)) == seen_by_delta_rs(path)
    assert len(seen(reader)) == 1
    stored.create_checkpoint()
    (path / "_delta_log" / f"{1:020d}.json").unlink()
    assert seen(log_of(path)) == seen_by_delta_rs(path)
    assert writer.append(events(7, table="silver.planes")) == 5
    numbers = {file.table: file.ends(["batch_seq"])["batch_seq"] for file in reader.files()}
    assert [(table, greatest) for table, (_, greatest) in sorted(numbers.items())] == [
        ("silver.flights", 12),
        ("silver.planes", 7),
    ]


def test_a_table_that_replaced_another_is_read_from_its_beginning(path: Path) -> None:
    log = log_of(path)
    for number in range(3):
        log.append(events(number))
    assert len(log.files()) == 3
    shutil.rmtree(path)
    assert log.files() == []
    assert log.append(events(8)) == 1
    assert [file.ends(["batch_seq"])["batch_seq"][0] for file in log.files()] == [8]

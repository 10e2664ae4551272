"""An append-only table of events and its log, with several writers and repeated reads."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from millrace.control.events.event_files import read_events
from millrace.control.events.event_log import EventLog
from millrace.control.ledger import ops_table
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.log.delta_log import latest_version
from tests.support.ledger.event_race import EVENTS, event, race_and_count


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a lake, 100% übrig" / "ops" / "events"


@pytest.fixture
def events(path: Path) -> OpsTable:
    return OpsTable(path, EVENTS)


def words(events: OpsTable, table: str = "silver.flights") -> list[str]:
    return [rows["word"] for rows in events.events(table)]


def test_a_table_is_created_by_the_first_event_and_the_events_of_one_call_are_one_commit(
    events: OpsTable, path: Path
) -> None:
    assert events.events("silver.flights") == []
    events.compact("silver.flights")
    events.append([])
    assert not events.append_once([], "key"), "its key stays free"
    assert not path.exists()
    given = [event("silver.flights", word) for word in "abc"]
    assert events.append_once(given, "key")
    events.append([])
    events.append([event("silver.planes", word) for word in "de"])
    assert latest_version(path) == 2, "the table, and one version for each call with events"
    assert words(events, "silver.planes") == ["d", "e"]
    assert events.events("silver.flights") == given


def test_compaction_removes_events_older_than_the_retention(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops_table, "_FILE_BYTES", 5_000)
    monkeypatch.setattr(ops_table, "FILES_WORTH_COMPACTING", 4)
    kept = OpsTable(path, EVENTS, keep=timedelta(days=30))
    for word in ("old", "so old, and so much, that its file is full" + token_hex(5_000)):
        kept.append([{**event("silver.flights", word), "recorded_at": datetime.now(UTC) - timedelta(days=31)}])
    for number in range(4):
        kept.append([event("silver.flights", str(number))])
    kept.compact("silver.flights")
    assert words(OpsTable(path, EVENTS)) == list(map(str, range(4)))


def test_a_reader_finds_the_events_of_files_that_were_rewritten_before_it_opened_them(
    path: Path, events: OpsTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    events.append([event("silver.flights", word) for word in ("C-17", "other")])
    reader, rewritten = OpsTable(path, EVENTS), list[str]()

    def hide(_: str, rows: pa.Table) -> pa.Table:
        words = ["" if word == "C-17" else word for word in rows["word"].to_pylist()]
        return rows.set_column(rows.schema.get_field_index("word"), "word", pa.array(words, pa.string()))

    def read_late(*args: object) -> object:
        if not rewritten:
            rewritten.append("once")
            events.rewrite(hide)
        return read_events(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(ops_table, "read_events", read_late)
    assert words(reader) == ["", "other"]
    assert rewritten


def test_only_the_first_append_with_a_key_counts(events: OpsTable, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert events.append_once([event("silver.flights", "first")], "key")
    assert not events.append_once([event("silver.flights", "second")], "key")
    assert not OpsTable(path, EVENTS).append_once([event("silver.flights", "third")], "key")
    assert events.append_once([event("silver.flights", "other")], "another key")
    monkeypatch.setattr(ops_table, "FILES_WORTH_COMPACTING", 3)
    for number in range(3):
        events.append([event("silver.planes", str(number))])
    assert events.compact("silver.planes")
    assert not events.compact("silver.flights"), "a few files are not worth a commit"
    DeltaTable(str(path)).create_checkpoint()
    assert not OpsTable(path, EVENTS).append_once([event("silver.flights", "fourth")], "key")
    assert words(events) == ["first", "other"]


def test_processes_that_append_compact_and_read_find_each_event_once(path: Path) -> None:
    race_and_count(path, processes=3, rounds=6)


NUMBERS = pa.schema(
    [("recorded_at", pa.timestamp("us", tz="UTC")), ("table", pa.string()), ("batch_seq", pa.int64())],
)
AT = datetime(2026, 3, 1, 12, 30, 15, 123456, UTC)


def log_of(path: Path) -> EventLog:
    def create() -> None:
        DeltaTable.create(str(path), NUMBERS, mode="ignore", partition_by=["table"])

    return EventLog(path, ["recorded_at", "batch_seq"], create)


def numbered(*numbers: int, table: str = "silver.flights") -> pa.Table:
    return pa.Table.from_pylist([{"recorded_at": AT, "table": table, "batch_seq": one} for one in numbers], NUMBERS)


def test_delta_rs_and_millrace_read_the_commits_of_each_other(path: Path) -> None:
    writer, reader = log_of(path), log_of(path)
    assert reader.files() == []

    def require_same_files(*logs: EventLog) -> int:
        by_delta_rs = set(map(unquote, DeltaTable(str(path)).file_uris()))
        assert all({str(file.path) for file in log.files()} == by_delta_rs for log in (*logs, log_of(path)))
        return len(by_delta_rs)

    for number in range(3):
        assert writer.append(numbered(number, number + 10)) == number + 1
        assert require_same_files(writer, reader) == number + 1
    stored = DeltaTable(str(path))
    assert sorted(stored.to_pyarrow_table()["batch_seq"].to_pylist()) == [0, 1, 2, 10, 11, 12]
    [added, *_] = pa.table(stored.get_add_actions(flatten=True)).sort_by("min.batch_seq").to_pylist()
    assert (added["num_records"], added["min.batch_seq"], added["max.batch_seq"]) == (2, 0, 10)
    assert added["max.recorded_at"] == AT
    stored.optimize.compact()
    assert require_same_files(reader) == 1
    stored.create_checkpoint()
    (path / "_delta_log" / f"{1:020d}.json").unlink()
    require_same_files()
    assert writer.append(numbered(7, table="silver.planes")) == 5
    numbers = {file.table: file.ends(["batch_seq"])["batch_seq"] for file in reader.files()}
    assert {table: greatest for table, (_, greatest) in numbers.items()} == {"silver.flights": 12, "silver.planes": 7}
    shutil.rmtree(path)
    assert writer.files() == []
    assert writer.append(numbered(8)) == 1
    assert [file.ends(["batch_seq"])["batch_seq"][0] for file in writer.files()] == [8], "of a table that replaced it"

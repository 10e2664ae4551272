"""An append-only table of events, with several writers and repeated reads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from include.control.ledger import ops_table
from include.control.ledger.ops_table import FILES_WORTH_COMPACTING, OpsTable
from include.control.log.delta_log import latest_version

WRITERS, EACH = 8, 5
EVENTS = pa.schema([("recorded_at", pa.timestamp("us", tz="UTC")), ("table", pa.string()), ("word", pa.string())])


def event(table: str, word: str) -> dict[str, Any]:
    return {"recorded_at": datetime.now(UTC), "table": table, "word": word}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a lake, 100% übrig" / "ops" / "events"


@pytest.fixture
def events(path: Path) -> OpsTable:
    return OpsTable(path, EVENTS)


def words(events: OpsTable, table: str = "silver.flights") -> list[str]:
    return [rows["word"] for rows in events.events(table)]


def test_a_table_that_was_never_written_has_no_events(events: OpsTable, path: Path) -> None:
    assert events.events("silver.flights") == []
    events.compact("silver.flights")
    assert not path.exists()


def test_appending_nothing_writes_nothing(events: OpsTable, path: Path) -> None:
    events.append([])
    assert not path.exists()
    events.append([event("silver.flights", "a")])
    events.append([])
    assert latest_version(path) == 1, "that of the table and that of the event"


def test_events_of_one_call_are_one_commit(events: OpsTable, path: Path) -> None:
    events.append([event("silver.flights", word) for word in "abc"])
    events.append([event("silver.planes", word) for word in "de"])
    assert latest_version(path) == 2
    assert words(events, "silver.planes") == ["d", "e"]


def test_an_event_comes_back_with_all_its_columns(events: OpsTable) -> None:
    given = event("silver.flights", "a")
    events.append([given])
    assert events.events("silver.flights") == [given]


def test_events_come_oldest_first_in_any_order_of_writing(events: OpsTable) -> None:
    now = datetime.now(UTC)
    for minutes in (3, 1, 2):
        events.append([{**event("silver.flights", str(minutes)), "recorded_at": now + timedelta(minutes=minutes)}])
    assert words(events) == ["1", "2", "3"]


def test_events_are_found_by_table_and_by_the_values_of_columns(events: OpsTable) -> None:
    odd = 'it\'s a "word" with / = and \\ in it'
    events.append([event("silver.flights", "a"), event("silver.flights", odd), event("bronze.flights", "a")])
    assert len(events.events("silver.flights")) == 2
    assert [row["table"] for row in events.events("bronze.flights", word="a")] == ["bronze.flights"]
    assert [row["word"] for row in events.events("silver.flights", word=odd)] == [odd]
    assert events.events("silver.flights", word="b") == []
    assert events.events("gold.flights") == []


def test_the_next_read_sees_events_of_other_writers(events: OpsTable, path: Path) -> None:
    other = OpsTable(path, EVENTS)
    assert (words(events), words(other)) == ([], [])
    for number in range(3):
        other.append([event("silver.flights", f"theirs {number}")])
        events.append([event("silver.flights", f"ours {number}")])
        seen = [f"{whose} {at}" for at in range(number + 1) for whose in ("theirs", "ours")]
        assert words(events) == seen == words(other) == words(OpsTable(path, EVENTS))


def test_the_next_read_sees_a_table_that_another_writer_created(events: OpsTable, path: Path) -> None:
    assert words(events) == []
    OpsTable(path, EVENTS).append([event("silver.flights", "a")])
    assert words(events) == ["a"]
    events.append([event("silver.flights", "b")])
    assert words(events) == ["a", "b"]


def test_appends_compact_files_and_keep_the_events(events: OpsTable, path: Path) -> None:
    reader, count = OpsTable(path, EVENTS), FILES_WORTH_COMPACTING
    for _ in range(2):
        events.append([event("silver.planes", "other")])
    for number in range(count - 1):
        events.append([event("silver.flights", str(number))])
    assert len(words(reader)) == count - 1
    before = latest_version(path)
    events.compact("silver.flights")
    assert latest_version(path) == before, "a few files are not worth a commit"
    later = 40 - before
    for number in range(count - 1, count - 1 + later):
        events.append([event("silver.flights", str(number))])
    assert len(DeltaTable(str(path)).file_uris()) == 3, "one of this table, and the two of the other"
    expected = list(map(str, range(count - 1 + later)))
    assert words(events) == expected == words(reader) == words(OpsTable(path, EVENTS))
    assert words(reader, "silver.planes") == ["other", "other"]


def test_the_number_of_files_stays_small(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops_table, "_KEEP_REPLACED", timedelta(0))
    events = OpsTable(path, EVENTS)
    for number in range(5 * FILES_WORTH_COMPACTING):
        events.append([event("silver.flights", str(number))])
    assert len(list(path.rglob("*.parquet"))) < 3 * FILES_WORTH_COMPACTING, "data files and checkpoints"
    assert len(words(OpsTable(path, EVENTS))) == 5 * FILES_WORTH_COMPACTING


def test_compaction_removes_events_older_than_the_retention(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops_table, "_FILE_BYTES", 5_000)
    kept = OpsTable(path, EVENTS, keep=timedelta(days=30))
    for word in ("old", "so old, and so much, that its file is full" + token_hex(5_000)):
        kept.append([{**event("silver.flights", word), "recorded_at": datetime.now(UTC) - timedelta(days=31)}])
    for number in range(FILES_WORTH_COMPACTING):
        kept.append([{**event("silver.flights", str(number)), "recorded_at": datetime.now(UTC)}])
    kept.compact("silver.flights")
    assert words(OpsTable(path, EVENTS)) == list(map(str, range(FILES_WORTH_COMPACTING)))


def test_writers_that_create_and_append_at_the_same_time_lose_nothing(path: Path) -> None:
    def write(number: int) -> None:
        events = OpsTable(path, EVENTS)
        for word in range(EACH):
            events.append([event("silver.flights", f"{number}/{word}")])
            assert f"{number}/{word}" in words(events), "a writer does not see what it wrote"

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    expected = sorted(f"{number}/{word}" for number in range(WRITERS) for word in range(EACH))
    assert sorted(words(OpsTable(path, EVENTS))) == expected


def test_only_the_first_append_with_a_key_counts(events: OpsTable, path: Path) -> None:
    assert events.append_once([event("silver.flights", "first")], "key")
    assert not events.append_once([event("silver.flights", "second")], "key")
    assert not OpsTable(path, EVENTS).append_once([event("silver.flights", "third")], "key")
    assert events.append_once([event("silver.flights", "other")], "another key")
    for number in range(FILES_WORTH_COMPACTING):
        events.append([event("silver.planes", str(number))])
    events.compact("silver.planes")
    DeltaTable(str(path)).create_checkpoint()
    assert not OpsTable(path, EVENTS).append_once([event("silver.flights", "fourth")], "key")
    assert words(events) == ["first", "other"]


def test_an_append_without_events_does_not_use_its_key(events: OpsTable, path: Path) -> None:
    assert not events.append_once([], "key")
    assert not path.exists()
    assert events.append_once([event("silver.flights", "first")], "key")


@pytest.mark.parametrize("is_first_said_once", [True, False])
def test_opening_a_long_log_reads_only_its_end(path: Path, is_first_said_once: bool) -> None:
    first = OpsTable(path, EVENTS)
    if is_first_said_once:
        first.append_once([event("silver.planes", "once")], "key")
    for number in range(45):
        first.append([event("silver.flights", f"{number:02d}")])
    newest = max(int(file.name[:20]) for file in (path / "_delta_log").glob("*.checkpoint.parquet"))
    assert latest_version(path) - newest < 20
    assert words(OpsTable(path, EVENTS)) == [f"{number:02d}" for number in range(45)]
    assert OpsTable(path, EVENTS).append_once([event("silver.planes", "again")], "key") is not is_first_said_once


def test_one_of_many_writers_with_the_same_key_wins_and_no_other_event_is_lost(path: Path) -> None:
    def write(number: int) -> bool:
        events = OpsTable(path, EVENTS)
        events.append([event("silver.flights", f"aside {number}")])
        return events.append_once([event("silver.planes", str(number))], "key")

    with ThreadPoolExecutor(WRITERS) as pool:
        was_first = list(pool.map(write, range(WRITERS)))
    assert sum(was_first) == 1
    assert words(OpsTable(path, EVENTS), "silver.planes") == [str(was_first.index(True))]
    assert len(words(OpsTable(path, EVENTS))) == WRITERS


def test_the_first_commit_may_have_a_key(path: Path) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        said = pool.map(lambda _: OpsTable(path, EVENTS).append_once([event("silver.flights", "a")], "key"), range(8))
        assert sum(said) == 1
    assert words(OpsTable(path, EVENTS)) == ["a"]

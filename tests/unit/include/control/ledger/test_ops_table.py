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
from tests.support.ledger.event_race import race_and_count

WRITERS, EACH = 4, 3
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


def test_the_next_read_sees_events_of_other_writers_also_those_of_a_new_table(events: OpsTable, path: Path) -> None:
    other = OpsTable(path, EVENTS)
    assert (words(events), words(other)) == ([], [])
    for number in range(3):
        other.append([event("silver.flights", f"theirs {number}")])
        assert words(events)[-1] == f"theirs {number}"
        events.append([event("silver.flights", f"ours {number}")])
        seen = [f"{whose} {at}" for at in range(number + 1) for whose in ("theirs", "ours")]
        assert words(events) == seen == words(other) == words(OpsTable(path, EVENTS))


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
    monkeypatch.setattr(ops_table, "FILES_WORTH_COMPACTING", 10)
    events = OpsTable(path, EVENTS)
    for number in range(50):
        events.append([event("silver.flights", str(number))])
    assert len(list(path.rglob("*.parquet"))) < 30, "data files and checkpoints"
    assert len(words(OpsTable(path, EVENTS))) == 50


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


def test_only_the_first_append_with_a_key_counts(events: OpsTable, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert events.append_once([event("silver.flights", "first")], "key")
    assert not events.append_once([event("silver.flights", "second")], "key")
    assert not OpsTable(path, EVENTS).append_once([event("silver.flights", "third")], "key")
    assert events.append_once([event("silver.flights", "other")], "another key")
    monkeypatch.setattr(ops_table, "FILES_WORTH_COMPACTING", 3)
    for number in range(3):
        events.append([event("silver.planes", str(number))])
    assert events.compact("silver.planes")
    DeltaTable(str(path)).create_checkpoint()
    assert not OpsTable(path, EVENTS).append_once([event("silver.flights", "fourth")], "key")
    assert words(events) == ["first", "other"]


def test_of_writers_that_create_and_append_at_the_same_time_one_wins_a_key_and_no_event_is_lost(path: Path) -> None:
    def write(number: int) -> bool:
        events = OpsTable(path, EVENTS)
        was_first = events.append_once([event("silver.planes", str(number))], "key")
        for word in range(EACH):
            events.append([event("silver.flights", f"{number}/{word}")])
            assert f"{number}/{word}" in words(events), "a writer does not see what it wrote"
        return was_first

    with ThreadPoolExecutor(WRITERS) as pool:
        was_first = list(pool.map(write, range(WRITERS)))
    assert sum(was_first) == 1
    assert words(OpsTable(path, EVENTS), "silver.planes") == [str(was_first.index(True))]
    expected = sorted(f"{number}/{word}" for number in range(WRITERS) for word in range(EACH))
    assert sorted(words(OpsTable(path, EVENTS))) == expected


def test_processes_that_append_compact_and_read_find_each_event_once(path: Path) -> None:
    race_and_count(path, processes=3, rounds=6)

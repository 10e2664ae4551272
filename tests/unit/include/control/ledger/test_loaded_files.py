"""The contents that a table has loaded, compared with plain dictionaries of files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.contracts.job.report import FileRows, RowCounts
from include.control.ledger.events import FILES, NO_TOKEN, FileEvent
from include.control.ledger.ledger import Ledger
from include.control.ledger.loaded_files import LoadedFiles, planned_files_query
from include.control.ledger.ops_table import FILES_WORTH_COMPACTING
from include.control.log.batch import FileFact, Stream, Winner
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import intent_of
from tests.support.ledger.ledger_reading import loaded_contents

ORDERS = Stream("bronze.orders")
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
PATHS = ["a", "b/é c%20.json", "s3://lake/" + "long/" * 60]
CHECKSUMS = ["", "etag:1", "etag:2", "ab" * 32]


@dataclass(frozen=True)
class Event:
    """An event of a file."""

    file: FileFact
    token: str
    event: str
    table_id: str
    minute: int


FACTS = st.builds(
    FileFact,
    path=st.sampled_from(PATHS),
    size=st.integers(1, 2),
    mtime_ns=st.sampled_from([0, 2**62]),
    checksum=st.sampled_from(CHECKSUMS),
)
EVENTS = st.builds(
    Event,
    file=FACTS,
    token=st.sampled_from(["won", "won too", "lost", NO_TOKEN]),
    event=st.sampled_from([FileEvent.PLANNED, FileEvent.PLANNED, FileEvent.SEEN, FileEvent.LOADED, FileEvent.FAILED]),
    table_id=st.sampled_from(["id", "id", "other"]),
    minute=st.integers(0, 3),
)
LEDGERS = st.lists(st.lists(EVENTS, max_size=6), max_size=4)
"""A list of data files; a compacted data file holds the events of several attempts."""
WINNERS = {"won": 1, "won too": 2}


def pieces(events: list[Event]) -> Iterator[pa.RecordBatch]:
    """Yield a data file, two events at a time."""
    query = planned_files_query("id")
    schema = pa.schema([field for field in FILES if field.name in {*query.schema.names, *dict(query.conditions)}])
    for first in range(0, len(events), 2):
        rows = [
            {
                "recorded_at": NOON + timedelta(minutes=event.minute),
                "event": str(event.event),
                "table_id": event.table_id,
                "token": event.token,
                "batch_seq": WINNERS.get(event.token),
                **{name: getattr(event.file, name) for name in ("path", "size", "mtime_ns", "checksum")},
            }
            for event in events[first : first + 2]
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def unread(_: Collection[str]) -> list[FileFact]:
    """Fail: these tests need no other facts."""
    pytest.fail("the ledger was read again")


def loaded_of(ledger: list[list[Event]]) -> LoadedFiles:
    answers = [planned_files_query("id").evaluate(pieces(events)) for events in ledger]
    return LoadedFiles(lambda _: answers, WINNERS.keys().__and__, unread)


def contents_of(ledger: list[list[Event]]) -> list[FileFact]:
    """Return, as a simple model, every content that a winner loaded or that was seen again, oldest first."""
    events = sorted((event for events in ledger for event in events), key=lambda event: event.minute)
    of_table = [event for event in events if event.event in (FileEvent.PLANNED, FileEvent.SEEN)]
    return [event.file for event in of_table if event.table_id == "id" and event.token != "lost"]


@settings(max_examples=400, deadline=None)
@given(ledger=LEDGERS, paths=st.sets(st.sampled_from(PATHS)))
def test_the_last_loaded_content_of_a_path_counts(ledger: list[list[Event]], paths: set[str]) -> None:
    last = {file.path: file for file in contents_of(ledger)}
    assert loaded_of(ledger).last_of(paths) == {path: last[path] for path in paths if path in last}


@settings(max_examples=200, deadline=None)
@given(ledger=LEDGERS)
def test_a_table_holds_each_loaded_content_or_only_the_last_one_of_a_path(ledger: list[list[Event]]) -> None:
    loaded, contents = loaded_of(ledger), contents_of(ledger)
    for file in (FileFact(path, 1, 1, checksum) for path in PATHS for checksum in CHECKSUMS):
        of_path = [content.checksum for content in contents if content.path == file.path]
        assert loaded.holds(file, only_last=False) == (file.checksum in of_path)
        assert loaded.holds(file, only_last=True) == (of_path[-1:] == [file.checksum])


def test_the_facts_of_a_path_include_every_loaded_content(tmp_path: Path) -> None:
    ledger, first = Ledger(LakehousePaths(tmp_path)), FileFact("a", 1, 1, "aa", columns=("x", "y"), layout="array")
    second, other, lost = replace(first, checksum="bb", size=2), replace(first, path="b"), replace(first, checksum="cc")
    for seq, files in enumerate([[first, other], [second]], start=1):
        load(ledger, seq, files)
    ledger.record_intent(intent_of("id", 3, stream=ORDERS), [lost])
    loaded = ledger.loaded_files(ORDERS.table, "id")
    assert loaded.facts(["a", "never loaded"]) == [first, second]
    assert ledger.loaded_files(ORDERS.table, "other id").facts(["a"]) == []


def test_a_compaction_changes_nothing_for_earlier_readers(tmp_path: Path) -> None:
    ledger, others = Ledger(LakehousePaths(tmp_path)), Ledger(LakehousePaths(tmp_path))
    for seq in range(1, FILES_WORTH_COMPACTING // 2 + 2):
        load(others, seq, [FileFact("again", seq, seq, f"sum {seq}"), FileFact(f"{seq}", 1, seq, "one")])
        assert ledger.loaded_files(ORDERS.table, "id").holds(FileFact("again", seq, seq, f"sum {seq}"), only_last=True)
    contents = loaded_contents(others, ORDERS.table, "id")
    assert len(contents) == FILES_WORTH_COMPACTING + 2
    last = {file.path: file for file in contents}
    for reader in (ledger, others, Ledger(LakehousePaths(tmp_path))):
        loaded = reader.loaded_files(ORDERS.table, "id")
        assert loaded.last_of([*last, "new"]) == last
        assert all(loaded.holds(file, only_last=False) for file in contents)


def load(ledger: Ledger, seq: int, files: list[FileFact]) -> None:
    """Record a complete batch of the files."""
    winner = Winner(intent_of("id", seq, stream=ORDERS), seq)
    ledger.record_intent(winner.intent, files)
    ledger.record_committed([winner])
    ledger.record_closed(winner, RowCounts(), {file.path: FileRows(read=1, written=1) for file in files})

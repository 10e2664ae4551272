"""The ledger returns the same although it leaves most of its history unread."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.job.report import RowCounts
from millrace.control.events import event_files
from millrace.control.ledger import ops_table
from millrace.control.ledger.events import BATCHES, FILES, NO_TOKEN, Failure, FileEvent, failures_of, file_fact
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.log.batch import BatchSources, FileFact, Stream, Winner
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import day, intent_of

TABLE, IDS, DAYS, LAST = "bronze.orders", ("id", "earlier"), range(1, 5), 9
FILES_OF_ALL = [
    FileFact(f"orders/{name}", 1, 1, checksum, columns=("x", "y"), layout="array")
    for name in ("a", "é c%20", "long/" * 60)
    for checksum in ("x", "y")
]


@dataclass(frozen=True)
class Attempt:
    """An attempt at a batch, with its last event."""

    table_id: str
    stream: str
    seq: int
    day: int
    version: int
    last_event: str
    files: list[FileFact]
    is_replay: bool

    @cached_property
    def winner(self) -> Winner:
        replay, rebuild = ("r" if is_one else "" for is_one in (self.is_replay, self.stream == "rebuild"))
        sources = BatchSources(replay=replay, rebuild=rebuild, replaces_files=len(self.files) > 1)
        intent = intent_of(self.table_id, self.seq, stream=Stream(TABLE, self.stream), sources=sources)
        interval = day(self.day)
        intent = intent.model_copy(update={"interval_start": interval.start, "interval_end": interval.end})
        return Winner(intent, self.version)

    @property
    def rows(self) -> RowCounts | None:
        return RowCounts(read=self.seq) if self.last_event == "closed" else None

    def record(self, ledger: Ledger) -> None:
        ledger.record_intent(self.winner.intent, self.files)
        if self.last_event != "planned":
            ledger.record_committed([self.winner])
        if self.rows is not None:
            ledger.record_closed(self.winner, self.rows)


@dataclass(frozen=True)
class BatchlessEvent:
    """An event of a file that belongs to no batch."""

    table_id: str
    kind: FileEvent
    day: int
    file: FileFact

    def record(self, ledger: Ledger) -> None:
        ledger.record_files(self.kind, TABLE, self.table_id, day(self.day), [self.file])


WITHOUT_BATCH = (FileEvent.FAILED, FileEvent.FAILED, FileEvent.REPLAYED, FileEvent.GIVEN_UP, FileEvent.SEEN)
EVENTS = st.lists(
    st.builds(
        Attempt,
        table_id=st.sampled_from(IDS),
        stream=st.sampled_from(["main", "rebuild"]),
        seq=st.integers(1, LAST),
        day=st.sampled_from(DAYS),
        version=st.integers(0, LAST),
        last_event=st.sampled_from(["planned", "committed", "closed"]),
        files=st.lists(st.sampled_from(FILES_OF_ALL), max_size=2),
        is_replay=st.booleans(),
    )
    | st.builds(
        BatchlessEvent,
        table_id=st.sampled_from(IDS),
        kind=st.sampled_from(WITHOUT_BATCH),
        day=st.sampled_from(DAYS),
        file=st.sampled_from(FILES_OF_ALL),
    ),
    max_size=12,
)


class AllOfHistory:
    """The simple model: it reads every event, and then selects."""

    def __init__(self, paths: LakehousePaths) -> None:
        batches = OpsTable(paths.ops("batches"), BATCHES).events(TABLE)
        self.committed = [row for row in batches if row["table_id"] == "id" and row["event"] == "committed"]
        self.files = [row for row in OpsTable(paths.ops("files"), FILES).events(TABLE) if row["table_id"] == "id"]
        self.won = {row["token"] for row in self.committed}

    def tokens(self, after: int, upto: int) -> set[str]:
        return {row["token"] for row in self.committed if after < row["version"] <= upto}

    def last(self, stream: str, upto: int) -> tuple[int, int] | None:
        of_stream = (row for row in self.committed if row["stream"] == stream and row["version"] <= upto)
        return max(((row["batch_seq"], row["version"]) for row in of_stream), default=None)

    def last_rebuild(self, above: int) -> int | None:
        rebuilds = (row for row in self.committed if row["stream"] == "rebuild" and row["batch_seq"] > above)
        return max((row["version"] for row in rebuilds), default=None)

    def of_intervals(self, starts: list[datetime]) -> set[str]:
        of_files = (row for row in self.committed if '"replay":"r"' not in row["intent"])
        return {row["token"] for row in of_files if row["interval_start"] in starts}

    def failed_files(self) -> dict[str, Failure]:
        return failures_of(self.files, self.won)

    def contents(self, path: str, *more: FileEvent) -> list[FileFact]:
        of_path = (row for row in self.files if row["path"] == path and row["event"] in (FileEvent.PLANNED, *more))
        return [file_fact(row) for row in of_path if row["token"] in {NO_TOKEN, *self.won}]


@settings(max_examples=15, deadline=None)
@given(events=EVENTS, after=st.integers(-1, LAST), upto=st.integers(0, LAST), days=st.sets(st.sampled_from(DAYS)))
def test_the_ledger_returns_the_same_as_a_model_that_reads_all_events(
    events: list[Attempt | BatchlessEvent],
    after: int,
    upto: int,
    days: set[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    paths = LakehousePaths(tmp_path_factory.mktemp("lake"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops_table, "FILES_WORTH_COMPACTING", 4)
        patch.setattr(event_files, "_ROW_GROUP_SIZE", 2)
        writers = Ledger(paths), Ledger(paths)
        for at, event in enumerate(events):
            event.record(writers[at % 2])
    ledger, every, starts = Ledger(paths), AllOfHistory(paths), [day(number).start for number in days]
    assert {batch.token for batch in ledger.batches(TABLE, "id", after, upto)} == every.tokens(after, upto)
    assert {batch.token for batch in ledger.batches_of(TABLE, "id", starts)} == every.of_intervals(starts)
    for stream in ("main", "rebuild"):
        last = ledger.last_recorded(TABLE, "id", stream, upto)
        assert (last and (last.batch_seq, last.version)) == every.last(stream, upto)
    rebuild = ledger.history.last_rebuild(TABLE, "id", after)
    assert (rebuild and rebuild.version) == every.last_rebuild(after)
    numbers = [number for stream in ("main", "rebuild") if (found := every.last(stream, upto)) for number in found[:1]]
    assert ledger.newest_number(TABLE, "id", upto) == max(numbers, default=0)
    for attempt in (event for event in events if isinstance(event, Attempt)):
        assert list(ledger.files_of(attempt.winner.intent)) == attempt.files
        assert ledger.closed_rows(attempt.winner) == attempt.rows
    _require_same_files(ledger, every, starts)


def _require_same_files(ledger: Ledger, every: AllOfHistory, starts: list[Any]) -> None:
    failed, loaded = every.failed_files(), ledger.loaded_files(TABLE, "id")
    assert ledger.failed_files(TABLE, "id") == failed
    of_days = ledger.failed_files(TABLE, "id", interval_start=starts)
    assert of_days.items() <= failed.items()
    assert of_days.keys() >= {path for path, failure in failed.items() if failure.interval_start in starts}
    for path in {file.path for file in FILES_OF_ALL}:
        of_path = {path: failed[path]} if path in failed else {}
        assert ledger.failed_files(TABLE, "id", path=[path]) == of_path
        assert loaded.facts([path]) == every.contents(path)
    for file in FILES_OF_ALL:
        held = every.contents(file.path, FileEvent.SEEN)
        assert loaded.holds(file, only_last=False) == (file in held)
        assert loaded.holds(file, only_last=True) == (held[-1:] == [file])
        last = [(each.path, each.checksum) for each in held[-1:]]
        assert [(each.path, each.checksum) for each in loaded.last_of([file.path]).values()] == last

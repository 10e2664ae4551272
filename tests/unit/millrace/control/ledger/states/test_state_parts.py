"""The parts of a state: the newest batches, sums, failed files, contention and measures are those of the history."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from millrace.clock import utc_now
from millrace.contracts.job.contention import LeaseWait, LostRace
from millrace.contracts.job.report import RowCounts
from millrace.control.ledger import batch_history, ledger, ops_table
from millrace.control.ledger.commit_history import CommitHistory, TableWrite
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states import recent_batches
from millrace.control.ledger.states.contention import Contention
from millrace.control.ledger.states.failed_files import MOST_FILES, FailedFiles
from millrace.control.ledger.states.measures import measure
from millrace.control.ledger.states.recent_batches import BatchKind, RecentBatches
from millrace.control.ledger.states.table_state import StatePart, TableStates
from millrace.control.ledger.states.totals import Totals
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.log.batch import BatchSources, FileFact
from millrace.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import append, create_table, day, load_batch, set_property

SPEC = silver_spec()
OLD = datetime(2020, 1, 5, tzinfo=UTC)
RACE = LostRace(conflict="ConcurrentAppendException", operation="MERGE", run_id="r", version=4)
WAITED = LeaseWait(seconds=2, holders="other")

Part = TypeVar("Part", bound=StatePart)


def part(root: Path, kind: type[Part]) -> Part:
    stored = TableStates(LakehousePaths(root)).read(SPEC.table, kind)
    assert stored is not None
    return stored


def batches(root: Path) -> tuple[RecentBatches, Totals]:
    """Return the newest batches and the sums in the state, which are those of the history."""
    recent, sums, history = part(root, RecentBatches), part(root, Totals), Ledger(LakehousePaths(root)).history
    assert history.recent(SPEC.table, recent.table_id) == recent
    of_history = history.totals(SPEC.table, sums.table_id)
    assert sums.model_copy(update={"seconds": 0}) == of_history.model_copy(update={"seconds": 0})
    assert 0 < sums.seconds <= of_history.seconds + 1e-6, "a second close makes a batch longer in the history"
    return recent, sums


def test_the_state_has_the_newest_batches_and_the_sums_of_all_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (recent_batches, batch_history):
        monkeypatch.setattr(module, "MOST_BATCHES", 3)
    loaded = [load_batch(tmp_path, SPEC, rows=rows, sources=BatchSources(files=3)) for rows in (1, 2, 3, 4)]
    loaded.append(load_batch(tmp_path, SPEC, rows=5, sources=BatchSources(replay="r1")))
    recent, sums = batches(tmp_path)
    assert [batch.rows.applied for batch in recent.batches] == [3, 4, 5]
    assert [batch.token for batch in recent.batches] == [winner.token for winner in loaded[2:]]
    assert sums.batches == {BatchKind.LOAD: 4, BatchKind.REPLAY: 1}
    assert (sums.rows.applied, sums.files) == (15, 12)


def test_a_lost_state_has_all_batches_again_after_the_next_one_and_another_table_starts_at_zero(
    tmp_path: Path, paths: LakehousePaths
) -> None:
    for rows in (1, 2, 3):
        load_batch(tmp_path, SPEC, rows=rows)
    (tmp_path / "_millrace" / "state" / SPEC.table).unlink()
    load_batch(tmp_path, SPEC, rows=4)
    recent, sums = batches(tmp_path)
    assert ([batch.rows.applied for batch in recent.batches], sums.rows.applied) == ([1, 2, 3, 4], 10)
    Path(paths.table(SPEC.table)).rename(tmp_path / "away")
    load_batch(tmp_path, SPEC, rows=3)
    recent, sums = batches(tmp_path)
    assert ([batch.rows.applied for batch in recent.batches], sums.rows.applied) == ([3], 3)


def test_a_batch_that_was_closed_twice_is_one_batch(tmp_path: Path, paths: LakehousePaths) -> None:
    winner = load_batch(tmp_path, SPEC, rows=2)
    Ledger(paths).record_closed(winner, RowCounts(read=2, applied=2, inserted=2))
    recent, sums = batches(tmp_path)
    assert [(batch.token, batch.rows.applied) for batch in recent.batches] == [(winner.token, 2)]
    assert sums.rows.applied == 2
    Ledger(paths).record_closed(winner, RowCounts(read=2, applied=1, unchanged=1))
    assert [batch.rows.applied for batch in part(tmp_path, RecentBatches).batches] == [1], "its last row counts"


def test_a_failure_after_a_close_leaves_no_gap_and_no_wrong_number(
    tmp_path: Path, paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_batch(tmp_path, SPEC, rows=1)
    states, none = TableStates(paths), WaitingRows(table_id=first.intent.table_id)
    states.change(SPEC.table, (WaitingRows, lambda _: none))
    second = load_batch(tmp_path, SPEC, closed=False)
    with monkeypatch.context() as dies:
        dies.setattr(ledger, "measure", lambda _: 1 / 0)
        Ledger(paths).record_closed(second, RowCounts(read=2, quarantined=2, applied=2))
    assert states.read(SPEC.table, WaitingRows) is None
    load_batch(tmp_path, SPEC, rows=4)
    recent, sums = batches(tmp_path)
    assert [batch.version for batch in recent.batches] == [first.version, second.version, second.version + 1]
    assert sums.rows.applied == 7


def test_a_file_is_given_up_after_its_last_attempt_and_no_more_once_it_is_loaded(
    tmp_path: Path, paths: LakehousePaths
) -> None:
    def record(event: FileEvent, *files: FileFact) -> FailedFiles:
        Ledger(paths).record_files(event, SPEC.table, table_id(paths.table(SPEC.table)), day(), files)
        return part(tmp_path, FailedFiles)

    load_batch(tmp_path, SPEC)
    bad, other, *many = (
        FileFact(path=f"orders/{number}.json", size=9, mtime_ns=1, checksum="aa", defect="line 7 is no JSON")
        for number in range(502)
    )
    for attempt in (1, 2, 3):
        failed = record(FileEvent.FAILED, bad)
        assert (failed.given_up(3), failed.attempts) == (int(attempt == 3), {attempt: 1})
    assert [(file.path, file.reason) for file in failed.files] == [(bad.path, bad.defect)]
    assert record(FileEvent.FAILED, other).attempts == {3: 1, 1: 1}
    assert record(FileEvent.REPLAYED, bad).given_up(3) == 0
    good = replace(bad, checksum="bb", defect="")
    load_batch(tmp_path, SPEC, files=(good,), sources=BatchSources(files=1))
    assert part(tmp_path, FailedFiles).attempts == {1: 1}
    assert record(FileEvent.GIVEN_UP, other).attempts == {}, "a file that a person gave up needs nobody"
    failed = record(FileEvent.FAILED, *many)
    assert (len(failed.files), failed.attempts) == (MOST_FILES, {1: 500}), "the state names some, and counts all"


def test_what_was_lost_to_other_writers_stays_counted_after_its_events_are_dropped_and_never_looks_like_something_new(
    tmp_path: Path, paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops_table, "FILES_WORTH_COMPACTING", 5)
    load_batch(tmp_path, SPEC)
    for number in range(4):
        at = OLD + timedelta(days=number)
        CommitHistory(paths).record(TableWrite(SPEC.table, "r", at, attempts=2, waited=WAITED, lost=(RACE,)))
    late = CommitHistory(paths, keep=timedelta(days=1))
    late.record(TableWrite(SPEC.table, "r", datetime.now(UTC), attempts=1, waited=WAITED))
    assert late._events.compact(SPEC.table)
    assert len(late.of(SPEC.table)) == 1, "events were dropped"
    sums = part(tmp_path, Contention)
    assert (sums.waited_s, sums.retries, sums.lost) == (10, 4, {RACE.conflict: 4})
    (tmp_path / "_millrace" / "state" / SPEC.table).unlink()
    load_batch(tmp_path, SPEC)
    assert TableStates(paths).read(SPEC.table, Contention) is None, "a scrape now says 0"
    late.record(TableWrite(SPEC.table, "r", datetime.now(UTC), attempts=2, waited=WAITED))
    sums = part(tmp_path, Contention)
    assert (sums.waited_s, sums.retries) == (2, 1)


def test_the_measures_say_since_when_the_table_exists_whatever_changes_it(table: Path) -> None:
    created, begun = [], utc_now()
    for _ in range(2):
        shutil.rmtree(table)
        create_table(table)
        first = measure(table)
        set_property(table)
        append(table)
        later = measure(table)
        assert first
        assert first.created
        assert later
        assert (later.created, later.version) == (first.created, 2)
        created.append(first.created)
    assert begun - timedelta(milliseconds=1) <= created[0] < created[1] <= utc_now()

"""The sums over all batches in the state of a table, from which counters follow: right, and never smaller."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from include.contracts.job.contention import LeaseWait, LostRace
from include.contracts.job.report import RowCounts
from include.control.ledger.commit_history import CommitHistory, TableWrite
from include.control.ledger.ledger import Ledger
from include.control.ledger.states.contention import Contention
from include.control.ledger.states.recent_batches import MOST_BATCHES, BatchKind
from include.control.ledger.states.table_state import TableStates
from include.control.ledger.states.totals import Totals
from include.control.log.batch import BatchSources
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import commit_file, load_batch

SPEC = silver_spec()
OLD = datetime(2020, 1, 5, tzinfo=UTC)
RACE = LostRace(conflict="ConcurrentAppendException", operation="MERGE", run_id="r", version=4)


def totals(paths: LakehousePaths) -> Totals:
    part = TableStates(paths).read(SPEC.table, Totals)
    assert part is not None
    history = Ledger(paths).history.totals(SPEC.table, part.table_id)
    assert part.model_copy(update={"seconds": 0}) == history.model_copy(update={"seconds": 0})
    assert 0 < part.seconds <= history.seconds + 1e-6, "a second close makes a batch longer in the history"
    return part


def test_the_sums_have_all_batches_also_those_that_are_no_longer_among_the_newest(tmp_path: Path) -> None:
    for _ in range(MOST_BATCHES + 2):
        load_batch(tmp_path, SPEC, rows=2, sources=BatchSources(files=3))
    load_batch(tmp_path, SPEC, rows=1, sources=BatchSources(replay="r1"))
    sums = totals(LakehousePaths(tmp_path))
    assert sums.batches == {BatchKind.LOAD: MOST_BATCHES + 2, BatchKind.REPLAY: 1}
    assert (sums.rows.applied, sums.files) == (2 * MOST_BATCHES + 5, 3 * MOST_BATCHES + 6)
    assert sums.seconds > 0


def test_a_lost_state_has_the_same_sums_again_after_the_next_batch(tmp_path: Path) -> None:
    for rows in (1, 2, 3):
        load_batch(tmp_path, SPEC, rows=rows)
    (tmp_path / "_millrace" / "state" / SPEC.table).unlink()
    load_batch(tmp_path, SPEC, rows=4)
    assert totals(LakehousePaths(tmp_path)).rows.applied == 10


def test_a_batch_whose_state_could_not_be_written_is_counted_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space left on device")

    load_batch(tmp_path, SPEC, rows=1)
    with monkeypatch.context() as patch:
        patch.setattr(TableStates, "change", fail)
        load_batch(tmp_path, SPEC, rows=2)
    load_batch(tmp_path, SPEC, rows=4)
    assert totals(LakehousePaths(tmp_path)).rows.applied == 7


def test_a_batch_that_is_closed_twice_counts_once(tmp_path: Path) -> None:
    winner = load_batch(tmp_path, SPEC, rows=2)
    Ledger(LakehousePaths(tmp_path)).record_closed(winner, RowCounts(read=2, applied=2, inserted=2))
    assert totals(LakehousePaths(tmp_path)).rows.applied == 2


def test_another_table_in_the_same_place_starts_at_zero(tmp_path: Path) -> None:
    load_batch(tmp_path, SPEC, rows=5)
    table = Path(LakehousePaths(tmp_path).table(SPEC.table))
    assert commit_file(table, 0).exists()
    table.rename(tmp_path / "away")
    load_batch(tmp_path, SPEC, rows=3)
    assert totals(LakehousePaths(tmp_path)).rows.applied == 3


def test_what_was_lost_to_other_writers_stays_counted_after_its_events_are_dropped(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    load_batch(tmp_path, SPEC)
    history = CommitHistory(paths)
    waited = LeaseWait(seconds=2, holders="other")
    for number in range(25):
        history.record(
            TableWrite(SPEC.table, "r", OLD + timedelta(days=number), attempts=2, waited=waited, lost=(RACE,))
        )
    late = CommitHistory(paths, keep=timedelta(days=1))
    for _ in range(9):
        late.record(TableWrite(SPEC.table, "r", datetime.now(UTC), attempts=1, waited=waited))
    assert late._events.compact(SPEC.table)
    assert len(late.of(SPEC.table)) == 9, "events were dropped"
    sums = TableStates(paths).read(SPEC.table, Contention)
    assert sums is not None
    assert (sums.waited_s, sums.retries, sums.lost) == (68, 25, {RACE.conflict: 25})


def test_after_a_lost_state_these_sums_start_at_zero_so_that_no_old_wait_looks_like_a_new_one(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    load_batch(tmp_path, SPEC)
    write = TableWrite(SPEC.table, "r", datetime.now(UTC), attempts=2, waited=LeaseWait(seconds=2, holders="other"))
    for _ in range(5):
        CommitHistory(paths).record(write)
    (tmp_path / "_millrace" / "state" / SPEC.table).unlink()
    load_batch(tmp_path, SPEC)
    assert TableStates(paths).read(SPEC.table, Contention) is None, "a scrape now says 0"
    CommitHistory(paths).record(write)
    sums = TableStates(paths).read(SPEC.table, Contention)
    assert sums is not None
    assert (sums.waited_s, sums.retries) == (2, 1)

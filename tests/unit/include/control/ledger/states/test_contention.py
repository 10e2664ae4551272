"""What writers lost to other writers, in the state of a table: a counter that never becomes smaller."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.contracts.job.contention import LeaseWait, LostRace
from include.control.ledger import ops_table
from include.control.ledger.commit_history import CommitHistory, TableWrite
from include.control.ledger.states.contention import Contention
from include.control.ledger.states.table_state import TableStates
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import load_batch

SPEC = silver_spec()
OLD = datetime(2020, 1, 5, tzinfo=UTC)
RACE = LostRace(conflict="ConcurrentAppendException", operation="MERGE", run_id="r", version=4)
WAITED = LeaseWait(seconds=2, holders="other")


def stored(root: Path) -> Contention | None:
    return TableStates(LakehousePaths(root)).read(SPEC.table, Contention)


def test_what_was_lost_to_other_writers_stays_counted_after_its_events_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops_table, "FILES_WORTH_COMPACTING", 5)
    paths = LakehousePaths(tmp_path)
    load_batch(tmp_path, SPEC)
    history = CommitHistory(paths)
    for number in range(4):
        history.record(
            TableWrite(SPEC.table, "r", OLD + timedelta(days=number), attempts=2, waited=WAITED, lost=(RACE,))
        )
    late = CommitHistory(paths, keep=timedelta(days=1))
    late.record(TableWrite(SPEC.table, "r", datetime.now(UTC), attempts=1, waited=WAITED))
    assert late._events.compact(SPEC.table)
    assert len(late.of(SPEC.table)) == 1, "events were dropped"
    sums = stored(tmp_path)
    assert sums is not None
    assert (sums.waited_s, sums.retries, sums.lost) == (10, 4, {RACE.conflict: 4})


def test_after_a_lost_state_these_sums_start_at_zero_so_that_no_old_wait_looks_like_a_new_one(tmp_path: Path) -> None:
    load_batch(tmp_path, SPEC)
    write = TableWrite(SPEC.table, "r", datetime.now(UTC), attempts=2, waited=WAITED)
    for _ in range(2):
        CommitHistory(LakehousePaths(tmp_path)).record(write)
    (tmp_path / "_millrace" / "state" / SPEC.table).unlink()
    load_batch(tmp_path, SPEC)
    assert stored(tmp_path) is None, "a scrape now says 0"
    CommitHistory(LakehousePaths(tmp_path)).record(write)
    sums = stored(tmp_path)
    assert sums is not None
    assert (sums.waited_s, sums.retries) == (2, 1)

"""The newest batches in the state of a table are those of the history."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.contracts.job.report import RowCounts
from include.control.ledger import ledger
from include.control.ledger.ledger import Ledger
from include.control.ledger.states.recent_batches import MOST_BATCHES, RecentBatches
from include.control.ledger.states.table_state import TableStates
from include.control.ledger.states.waiting_rows import WaitingRows
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import load_batch

SPEC = silver_spec()


def stored(paths: LakehousePaths) -> RecentBatches | None:
    return TableStates(paths).read(SPEC.table, RecentBatches)


def test_the_state_has_the_newest_batches_with_their_rows_and_drops_the_oldest(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    loaded = [load_batch(tmp_path, SPEC, rows=number) for number in range(1, MOST_BATCHES + 3)]
    recent = stored(paths)
    assert recent is not None
    assert [batch.rows.applied for batch in recent.batches] == list(range(3, MOST_BATCHES + 3))
    assert [batch.token for batch in recent.batches] == [winner.token for winner in loaded[2:]]


def test_a_lost_state_has_all_of_them_again_after_the_next_batch(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    for number in (1, 2, 3):
        load_batch(tmp_path, SPEC, rows=number)
    (tmp_path / "_millrace" / "state" / SPEC.table).unlink()
    load_batch(tmp_path, SPEC, rows=4)
    recent = stored(paths)
    assert recent is not None
    assert [batch.rows.applied for batch in recent.batches] == [1, 2, 3, 4]
    assert Ledger(paths).history.recent(SPEC.table, recent.table_id) == recent


def test_a_batch_that_was_closed_twice_is_one_batch_with_its_last_row_counts(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    winner = load_batch(tmp_path, SPEC, rows=2)
    Ledger(paths).record_closed(winner, RowCounts(read=2, applied=1, unchanged=1))
    recent = stored(paths)
    assert recent is not None
    assert [(batch.token, batch.rows.applied) for batch in recent.batches] == [(winner.token, 1)]
    assert Ledger(paths).history.recent(SPEC.table, recent.table_id) == recent


def test_a_failure_after_a_close_leaves_no_gap_and_no_wrong_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = LakehousePaths(tmp_path)
    first = load_batch(tmp_path, SPEC, rows=1)
    states, none = TableStates(paths), WaitingRows(table_id=first.intent.table_id)
    states.change(SPEC.table, (WaitingRows, lambda _: none))
    second = load_batch(tmp_path, SPEC, closed=False)
    with monkeypatch.context() as dies:
        dies.setattr(ledger, "measure", lambda _: 1 / 0)
        Ledger(paths).record_closed(second, RowCounts(read=2, quarantined=2))
    assert states.read(SPEC.table, WaitingRows) is None
    load_batch(tmp_path, SPEC, rows=3)
    recent = stored(paths)
    assert recent is not None
    assert [batch.version for batch in recent.batches] == [first.version, second.version, second.version + 1]

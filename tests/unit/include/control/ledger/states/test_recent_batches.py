"""The newest batches and the sums over all batches in the state of a table are those of the history."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.contracts.job.report import RowCounts
from include.control.ledger import batch_history, ledger
from include.control.ledger.ledger import Ledger
from include.control.ledger.states import recent_batches
from include.control.ledger.states.recent_batches import BatchKind, RecentBatches
from include.control.ledger.states.table_state import TableStates
from include.control.ledger.states.totals import Totals
from include.control.ledger.states.waiting_rows import WaitingRows
from include.control.log.batch import BatchSources
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import commit_file, load_batch

SPEC = silver_spec()


def stored(root: Path) -> tuple[RecentBatches, Totals]:
    """Return the newest batches and the sums in the state, which are those of the history."""
    states, history = TableStates(LakehousePaths(root)), Ledger(LakehousePaths(root)).history
    recent, sums = states.read(SPEC.table, RecentBatches), states.read(SPEC.table, Totals)
    assert recent is not None
    assert history.recent(SPEC.table, recent.table_id) == recent
    assert sums is not None
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
    recent, sums = stored(tmp_path)
    assert [batch.rows.applied for batch in recent.batches] == [3, 4, 5]
    assert [batch.token for batch in recent.batches] == [winner.token for winner in loaded[2:]]
    assert sums.batches == {BatchKind.LOAD: 4, BatchKind.REPLAY: 1}
    assert (sums.rows.applied, sums.files) == (15, 12)


def test_a_lost_state_has_all_batches_again_after_the_next_one(tmp_path: Path) -> None:
    for rows in (1, 2, 3):
        load_batch(tmp_path, SPEC, rows=rows)
    (tmp_path / "_millrace" / "state" / SPEC.table).unlink()
    load_batch(tmp_path, SPEC, rows=4)
    recent, sums = stored(tmp_path)
    assert [batch.rows.applied for batch in recent.batches] == [1, 2, 3, 4]
    assert sums.rows.applied == 10


def test_a_batch_that_was_closed_twice_is_one_batch(tmp_path: Path) -> None:
    winner = load_batch(tmp_path, SPEC, rows=2)
    Ledger(LakehousePaths(tmp_path)).record_closed(winner, RowCounts(read=2, applied=2, inserted=2))
    recent, sums = stored(tmp_path)
    assert [(batch.token, batch.rows.applied) for batch in recent.batches] == [(winner.token, 2)]
    assert sums.rows.applied == 2
    Ledger(LakehousePaths(tmp_path)).record_closed(winner, RowCounts(read=2, applied=1, unchanged=1))
    newest = TableStates(LakehousePaths(tmp_path)).read(SPEC.table, RecentBatches)
    assert newest is not None
    assert [batch.rows.applied for batch in newest.batches] == [1], "its last row counts"


def test_a_failure_after_a_close_leaves_no_gap_and_no_wrong_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_batch(tmp_path, SPEC, rows=1)
    states, none = TableStates(LakehousePaths(tmp_path)), WaitingRows(table_id=first.intent.table_id)
    states.change(SPEC.table, (WaitingRows, lambda _: none))
    second = load_batch(tmp_path, SPEC, closed=False)
    with monkeypatch.context() as dies:
        dies.setattr(ledger, "measure", lambda _: 1 / 0)
        Ledger(LakehousePaths(tmp_path)).record_closed(second, RowCounts(read=2, quarantined=2, applied=2))
    assert states.read(SPEC.table, WaitingRows) is None
    load_batch(tmp_path, SPEC, rows=4)
    recent, sums = stored(tmp_path)
    assert [batch.version for batch in recent.batches] == [first.version, second.version, second.version + 1]
    assert sums.rows.applied == 7


def test_another_table_in_the_same_place_starts_at_zero(tmp_path: Path) -> None:
    load_batch(tmp_path, SPEC, rows=5)
    table = Path(LakehousePaths(tmp_path).table(SPEC.table))
    assert commit_file(table, 0).exists()
    table.rename(tmp_path / "away")
    load_batch(tmp_path, SPEC, rows=3)
    recent, sums = stored(tmp_path)
    assert ([batch.rows.applied for batch in recent.batches], sums.rows.applied) == ([3], 3)

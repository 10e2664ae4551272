"""The number of waiting rows in the state of a table is that of its quarantine."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from include.control.ledger.resolution import table_id
from include.control.ledger.states.table_state import TableStates
from include.control.ledger.states.waiting_rows import WaitingRows
from include.control.quarantine import waiting as waiting_module
from include.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from include.control.quarantine.waiting import recount_waiting, waiting_after_batch
from include.paths import LakehousePaths
from tests.support.ledger.quarantine_rows import SEEN, quarantine, refused

TABLE = "bronze.orders"


def test_a_batch_that_refuses_nothing_where_nothing_waits_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_module, "count_old_rows", None)
    stored = WaitingRows(table_id="t")
    assert waiting_after_batch(TABLE, "t", LakehousePaths(tmp_path), 0, stored) is stored
    assert waiting_after_batch(TABLE, "t", LakehousePaths(tmp_path), 1, stored) is None, "what cannot be counted"


def test_a_batch_counts_the_rows_that_wait_after_it(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    target = quarantine(paths, TABLE, refused(1, "a"), refused(2, "a", of_day=2))
    after = partial(waiting_after_batch, TABLE, target, paths)
    counted = WaitingRows(table_id=target, rows=2, oldest=SEEN)
    assert after(0, None) == after(2, WaitingRows(table_id=target)) == counted
    assert after(0, WaitingRows(table_id="earlier")) == counted, "the state is of another table"


def test_a_decision_changes_the_number_and_a_crash_leaves_none(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    quarantine(paths, TABLE, refused(1, "a"), refused(2, "a", of_day=2))
    target, events, states = table_id(paths.table(TABLE)), QuarantineEvents(paths), TableStates(paths)
    with recount_waiting(TABLE, target, paths):
        events.record(RowEvent.DISCARDED, TABLE, target, ["r1"], Decision("ann", "", "run"))
    waiting = states.read(TABLE, WaitingRows)
    assert waiting is not None
    assert (waiting.rows, waiting.oldest) == (1, refused(2, of_day=2)["first_seen"])
    with pytest.raises(ZeroDivisionError), recount_waiting(TABLE, target, paths):
        _ = 1 / 0
    assert states.read(TABLE, WaitingRows) is None

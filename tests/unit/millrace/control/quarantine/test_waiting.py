"""The number of waiting rows in the state of a table is that of its quarantine."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.control.ledger.states.table_state import TableStates
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.log.batch import Stream, Winner
from millrace.control.quarantine import ageing
from millrace.control.quarantine import waiting as waiting_module
from millrace.control.quarantine.ageing import ageing_note
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.control.quarantine.rows import count_old_rows
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.control.quarantine.waiting import BatchWaiting, recount_waiting
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, gold_spec
from tests.support.ledger.delta_tables import intent_of
from tests.support.ledger.quarantine_rows import SEEN, quarantine, refused

TABLE = "bronze.orders"
DAY = timedelta(days=1)


def batch(target: str, seq: int, stream: str = "main") -> Winner:
    return Winner(intent_of(target, seq, stream=Stream(TABLE, stream)), seq)


def test_a_batch_that_refuses_nothing_reads_nothing_however_many_rows_wait(
    paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = WaitingRows(table_id="t", rows=7, oldest=SEEN, upto=4)
    monkeypatch.setattr(waiting_module, "count_old_rows", None)
    monkeypatch.setattr(waiting_module, "commit_versions", None)
    quiet = BatchWaiting(batch("t", 1), paths, added=0)
    assert not quiet.changes
    assert quiet.end(stored) is stored
    assert quiet.end(None) is None, "what cannot be counted"


def test_a_batch_adds_its_rows_to_the_number_without_a_look_at_the_others(
    paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = quarantine(paths, TABLE, refused(1, "a"))
    first = BatchWaiting(batch(target, 1), paths, added=1)
    known = first.end(None)
    assert known == WaitingRows(table_id=target, rows=1, oldest=SEEN, upto=0)
    second = BatchWaiting(batch(target, 2), paths, added=2)
    quarantine(paths, TABLE, refused(2, "a", of_day=2), refused(3, "a", of_day=2), by=second.winner.intent)
    marked = second.begin(known)
    assert marked is not None
    assert marked.closing == second.winner.token, "nobody trusts the number while the batch ends"
    monkeypatch.setattr(waiting_module, "count_old_rows", None)
    assert second.end(marked) == WaitingRows(table_id=target, rows=3, oldest=SEEN, upto=1)


STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "end", "die", "discard", "replace"]), st.booleans()), min_size=3, max_size=12
)


@settings(max_examples=8)
@given(STEPS)
def test_in_any_order_of_writers_deaths_and_decisions_the_number_is_that_of_the_quarantine(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool]]
) -> None:
    paths = LakehousePaths(tmp_path_factory.mktemp("lake"))
    target, number = quarantine(paths, TABLE, refused(0, "a")), 1
    states, events = TableStates(paths), QuarantineEvents(paths)
    running: dict[bool, BatchWaiting] = {}
    dead: dict[bool, Winner] = {}

    def close(change: BatchWaiting, *, dies: bool = False) -> None:
        if change.changes:
            states.change(TABLE, (WaitingRows, change.begin))
        if not dies:
            states.change(TABLE, (WaitingRows, change.end))

    for what, stream in steps:
        if what == "discard":
            with recount_waiting(TABLE, target, paths):
                events.record(RowEvent.DISCARDED, TABLE, target, [f"r{number - 1}"], Decision("ann", "", "run"))
        elif what in ("write", "replace") and stream not in running:
            if stream in dead:
                close(BatchWaiting(dead.pop(stream), paths, added=None))
            winner, rows = batch(target, number, str(stream)), number % 3
            if rows:
                quarantine(paths, TABLE, *(refused(number + at, "a") for at in range(rows)), by=winner.intent)
            running[stream] = BatchWaiting(winner, paths, None if what == "replace" else rows)
            number += rows + 1
        elif what in ("end", "die") and stream in running:
            change = running.pop(stream)
            close(change, dies=what == "die")
            if what == "die":
                dead[stream] = change.winner
        stored = states.read(TABLE, WaitingRows)
        if stored and not stored.closing and not running:
            rows, oldest = count_old_rows(StoredRows(TABLE, paths))
            assert (stored.rows, stored.oldest) == (rows, oldest), f"after {what}"


def test_a_decision_changes_the_number_and_a_crash_leaves_none(
    paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, states = quarantine(paths, TABLE, refused(1, "a"), refused(2, "a", of_day=2)), TableStates(paths)
    with recount_waiting(TABLE, target, paths):
        QuarantineEvents(paths).record(RowEvent.DISCARDED, TABLE, target, ["r1"], Decision("ann", "", "run"))
    waiting = states.read(TABLE, WaitingRows)
    assert waiting is not None
    assert (waiting.rows, waiting.oldest) == (1, SEEN + DAY)
    patient = bronze_spec(quarantine={"warn_after": "36 hours"})
    (note,) = ageing_note(patient, paths, SEEN + 3 * DAY)
    start = "1 row of bronze.orders waits in quarantine for more than 36 hours, the first since 2026-01-02"
    assert note.startswith(start)
    with monkeypatch.context() as patch:
        patch.setattr(ageing, "count_old_rows", None)
        assert ageing_note(patient, paths, SEEN + 2.5 * DAY) == (), "the state says that none is late"
    assert ageing_note(gold_spec(), paths, SEEN + 99 * DAY) == ()
    with pytest.raises(ZeroDivisionError), recount_waiting(TABLE, target, paths):
        _ = 1 / 0
    assert states.read(TABLE, WaitingRows) is None
    assert ageing_note(patient, paths, SEEN + 3 * DAY) == (note,)
    assert ageing_note(patient, paths, SEEN + 2 * DAY) == ()

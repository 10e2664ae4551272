"""The state of a quarantined row, computed from its events: a replay is final, and counts once."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.row_status import RowStatus
from millrace.control.log.batch import BatchSources, Winner
from millrace.control.quarantine.events import Decision, QuarantineEvents, ReceivedRow, RowEvent
from millrace.control.quarantine.stored_rows import row_states
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import intent_of

ANN = Decision("ann", "so", "a run")
TABLE = "silver.flights"


def event(what: RowEvent, row: str = "r1", **more: Any) -> dict[str, Any]:
    blank = {"replay": None, "batch_seq": None, "received": None, "fix": None, "reasons": None}
    return {**blank, "event": what.value, "row_id": row, **more}


FIX = event(RowEvent.FIXED, received='{"a":1}', fix="a = 1")
ANY = st.sampled_from(
    [
        FIX,
        event(RowEvent.DISCARDED),
        event(RowEvent.REOPENED),
        event(RowEvent.PLANNED, replay="p"),
        *(event(RowEvent.REFUSED, replay=replay, batch_seq=1, reasons=["no"]) for replay in "pq"),
        *(event(RowEvent.REPLAYED, replay=replay, batch_seq=2) for replay in "st"),
    ]
)


@settings(max_examples=60)
@given(st.lists(ANY))
def test_a_replayed_row_stays_replayed_and_each_outcome_of_a_replay_counts_once(events: list[dict[str, Any]]) -> None:
    outcomes = (RowEvent.REPLAYED, RowEvent.REFUSED)
    state = row_states(events).get("r1")
    replays = {change["replay"] for change in events if change["event"] in outcomes}
    is_replayed = any(change["event"] == RowEvent.REPLAYED for change in events)
    assert (state is None) == all(change["event"] == RowEvent.PLANNED for change in events)
    if state:
        assert (state.status is RowStatus.REPLAYED) == is_replayed
        assert state.attempts == len(replays)
    doubled = [change for change in events for _ in range(2 if change["event"] in outcomes else 1)]
    assert row_states(doubled) == row_states(events), "two drivers may record it"


def test_a_row_that_a_replay_refused_is_open_again_and_a_reopened_one_has_its_earlier_status() -> None:
    refused = event(RowEvent.REFUSED, replay="p", batch_seq=4, reasons=["day is null"])
    state = row_states([FIX, refused])["r1"]
    assert (state.status, state.reasons, state.received) == (RowStatus.OPEN, ("day is null",), '{"a":1}')
    assert state.replays == {"p": 4}
    discarded, reopened = event(RowEvent.DISCARDED), event(RowEvent.REOPENED)
    assert row_states([discarded])["r1"].status is RowStatus.DISCARDED
    assert row_states([discarded, reopened])["r1"].status is RowStatus.OPEN
    assert row_states([FIX, discarded, reopened])["r1"].status is RowStatus.FIXED


def test_the_outcome_of_a_replay_is_recorded_for_each_of_its_rows(paths: LakehousePaths) -> None:
    events = QuarantineEvents(paths)
    rows = [ReceivedRow("r1", "{}"), ReceivedRow("r2", '{"a":1}', "a = 1"), ReceivedRow("r3", "{}")]
    events.pin(TABLE, "t", "p", rows, ANN)
    assert row_states(events.events_of(TABLE, "t")) == {}
    winner = Winner(intent_of("t", 7, sources=BatchSources(replay="p", replayed_rows=3)), version=9)
    events.record_outcome(winner, [("r3", ["no"])], ANN)
    states = row_states(events.events_of(TABLE, "t"))
    assert {row: state.status.value for row, state in states.items()} == {
        "r1": "replayed", "r2": "replayed", "r3": "open"
    }  # fmt: skip
    assert events.pinned_rows(TABLE, "p") == rows
    assert events.decision_of(TABLE, "p") == ANN
    assert events.replayed_rows(TABLE, "t", "p") == []
    assert events.replayed_rows(TABLE, "t", "") == rows[:2]
    assert events.replayed_rows(TABLE, "another", "") == []


def test_a_replay_reads_nothing_new_and_loses_no_position() -> None:
    read = BatchSources(
        ranges={"bronze.orders": (3, 5)},
        source_ids={"bronze.orders": "b"},
        files=2,
        offsets={"orders": {0: (10, 15)}},
        topic_ids={"orders": "t"},
        reprocess=True,
    )
    after = read.at_same_position(replay="p", replayed_rows=3)
    assert (after.ranges, after.offsets) == ({"bronze.orders": (5, 5)}, {"orders": {0: (15, 15)}})
    assert (after.source_ids, after.topic_ids) == (read.source_ids, read.topic_ids)
    assert (after.files, after.reprocess, after.replay, after.replayed_rows) == (0, False, "p", 3)

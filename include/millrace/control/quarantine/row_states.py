"""The states of quarantined rows, computed from their events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from millrace.contracts.row_status import RowStatus
from millrace.control.quarantine.events import RowEvent


@dataclass(frozen=True)
class RowState:
    """The state of a row after its events.

    Attributes:
        status: its status.
        received: the row after its last fix, as JSON; empty if nobody has fixed it.
        fix: the last fix, as an expression or `edited`.
        reasons: why the last replay refused it; None if no replay did.
        replays: the replays that tried it -> the number of their batch.
        is_decided: whether a person has ever fixed, discarded or reopened it.
    """

    status: RowStatus = RowStatus.OPEN
    received: str = ""
    fix: str = ""
    reasons: tuple[str, ...] | None = None
    replays: Mapping[str, int] = field(default_factory=dict)
    is_decided: bool = False

    @property
    def attempts(self) -> int:
        """The number of replays that tried it."""
        return len(self.replays)


STATE_COLUMNS = ("event", "row_id", "replay", "batch_seq", "received", "fix", "reasons")
"""The columns of an event that affect the state of its row."""


def row_states(events: Iterable[Mapping[str, Any]]) -> dict[str, RowState]:
    """Return the state of every row that has events, by its id; the events are in the order of time.

    A replayed row stays replayed: a decision of a person during the replay came too late.
    """
    states: dict[str, RowState] = {}
    for event in events:
        if event["event"] != RowEvent.PLANNED:
            states[event["row_id"]] = _next_state(states.get(event["row_id"], RowState()), event)
    return states


def _next_state(state: RowState, event: Mapping[str, Any]) -> RowState:
    match RowEvent(event["event"]):
        case (RowEvent.REPLAYED | RowEvent.REFUSED) as outcome:
            return _after_replay(state, event, outcome)
        case _ if state.status is RowStatus.REPLAYED:
            return state
        case RowEvent.DISCARDED:
            return replace(state, status=RowStatus.DISCARDED, is_decided=True)
        case RowEvent.FIXED:
            fixed = {"received": event["received"], "fix": event["fix"], "is_decided": True}
            return replace(state, status=RowStatus.FIXED, **fixed)
    return replace(state, status=RowStatus.FIXED if state.received else RowStatus.OPEN, is_decided=True)


def _after_replay(state: RowState, event: Mapping[str, Any], outcome: RowEvent) -> RowState:
    """Return the state after a replay, whose outcome two drivers may have recorded."""
    tried = replace(state, replays={**state.replays, event["replay"]: event["batch_seq"]})
    if RowStatus.REPLAYED in (outcome.value, state.status):
        return replace(tried, status=RowStatus.REPLAYED)
    is_new = event["replay"] not in state.replays
    status = RowStatus.OPEN if state.status is RowStatus.FIXED and is_new else state.status
    return replace(tried, status=status, reasons=tuple(event["reasons"] or ()))

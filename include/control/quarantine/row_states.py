"""Where quarantined rows stand: their events, oldest first, put together by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from include.contracts.row_status import RowStatus
from include.control.quarantine.events import RowEvent


@dataclass(frozen=True)
class RowState:
    """What became of a row since it was refused.

    Attributes:
        status: where it stands.
        received: the row as it was last mended, as JSON; empty where nobody has.
        fix: what was mended, as an expression or `edited`.
        reasons: why the last replay refused it; None where none did.
        replays: the replays that tried it, by the number of their batch.
    """

    status: RowStatus = RowStatus.OPEN
    received: str = ""
    fix: str = ""
    reasons: tuple[str, ...] | None = None
    replays: Mapping[str, int] = field(default_factory=dict)

    @property
    def attempts(self) -> int:
        """How many replays tried it."""
        return len(self.replays)


STATE_COLUMNS = ("event", "row_id", "replay", "batch_seq", "received", "fix", "reasons")
"""What of an event says where its row stands."""


def row_states(events: Iterable[Mapping[str, Any]]) -> dict[str, RowState]:
    """Row id -> where it stands, of every row that has events.

    A row that was replayed is through for good: what a person said of it while its replay was under way came too late.
    """
    states: dict[str, RowState] = {}
    for event in events:
        if event["event"] != RowEvent.PLANNED:
            states[event["row_id"]] = _next(states.get(event["row_id"], RowState()), event)
    return states


def _next(state: RowState, event: Mapping[str, Any]) -> RowState:
    what = RowEvent(event["event"])
    if what in (RowEvent.REPLAYED, RowEvent.REFUSED):
        return _tried(state, event, what)
    if state.status is RowStatus.REPLAYED:
        return state
    if what is RowEvent.DISCARDED:
        return replace(state, status=RowStatus.DISCARDED)
    if what is RowEvent.FIXED:
        return replace(state, status=RowStatus.FIXED, received=event["received"], fix=event["fix"])
    return replace(state, status=RowStatus.FIXED if state.received else RowStatus.OPEN)


def _tried(state: RowState, event: Mapping[str, Any], what: RowEvent) -> RowState:
    """After a replay; two drivers may have told its outcome."""
    tried = replace(state, replays={**state.replays, event["replay"]: event["batch_seq"]})
    if RowStatus.REPLAYED in (what.value, state.status):
        return replace(tried, status=RowStatus.REPLAYED)
    is_known = event["replay"] in state.replays
    failed = RowStatus.OPEN if state.status is RowStatus.FIXED and not is_known else state.status
    return replace(tried, status=failed, reasons=tuple(event["reasons"] or ()))

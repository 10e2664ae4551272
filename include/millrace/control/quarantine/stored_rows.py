"""The quarantined rows of a table as they are stored, each with its state by its events, read without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from deltalake import DeltaTable

from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import RowStatus
from millrace.control.ledger.resolution import table_id
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.log.table_queries import identifiers, query, text_literals, timestamp_literal
from millrace.control.quarantine.events import QuarantineEvents, ReceivedRow, RowEvent
from millrace.paths import LakehousePaths

SUMMARY = ("row_id", "reasons", "source", "position", "_interval_start", "_batch_seq", "first_seen", "last_seen")
"""The columns of a quarantine table that describe a row, without the row itself, which is expensive to read."""

WHOLE = (*SUMMARY, "record", "received")
"""All columns, with the row itself."""

_BETWEEN = "\x1f"
"""The character between ids in a literal; no id has it."""


@dataclass(frozen=True)
class QuarantinedRow:
    """One quarantined row.

    Attributes:
        id: its id, the same each time its interval is read.
        status: its status.
        reasons: why it is refused: by the last replay that tried it, else by the batch that read it.
        source: its landing file, or its Kafka topic and partition; empty if unknown.
        position: its record number in that file, or its Kafka offset, if known.
        interval_start: start of the interval of the batch that read it.
        batch_seq: the last batch that refused it.
        first_seen: when it was refused first.
        last_seen: when it was refused last.
        attempts: the number of replays that tried it.
        replayed_in: the batch of the last of them; 0 for none.
        fix: how it was fixed; empty for a row as its source delivered it.
        is_decided: whether a person has ever fixed, discarded or reopened it.
        record: the row as the rules of the table saw it, as JSON, or the text that could not be parsed.
        received: the row as the writer of the table receives it, with its fix, as JSON.
    """

    id: str
    status: RowStatus
    reasons: tuple[str, ...]
    source: str
    position: int | None
    interval_start: datetime
    batch_seq: int
    first_seen: datetime
    last_seen: datetime
    attempts: int = 0
    replayed_in: int = 0
    fix: str = ""
    is_decided: bool = False
    record: str = ""
    received: str = ""

    @property
    def place(self) -> tuple[int, str, int, str]:
        """Its place in a list: the newest batch first, then by the position in the source."""
        return -self.batch_seq, self.source, self.position or 0, self.id

    @property
    def received_row(self) -> ReceivedRow:
        """The row that a replay tries."""
        return ReceivedRow(self.id, self.received, self.fix)


ORDER = "_batch_seq DESC, coalesce(source, ''), coalesce(position, 0), row_id"
"""The order of `QuarantinedRow.place` in SQL."""


class StoredRows:
    """The quarantined rows of one table as they are stored, and their events; it opens the quarantine once.

    Few rows have events. Those rows are read, and their state is computed in Python. All others are open, and have the
    stored reasons, so that a query selects and counts them.

    Args:
        table: the table that refused the rows.
        paths: the lakehouse.
        events: reads `ops.quarantine` of the lakehouse; by default its log is read anew.
    """

    def __init__(self, table: str, paths: LakehousePaths, events: QuarantineEvents | None = None) -> None:
        self._table, self._paths = table, paths
        self._events = events or QuarantineEvents(paths)
        self._results: dict[str, list[dict[str, Any]]] = {}

    @property
    def version(self) -> int:
        """The version of the quarantine that is read; -1 if there is none."""
        return self._stored.version() if self._stored else -1

    def select(self, columns: str, condition: str) -> list[dict[str, Any]]:
        """Return the result of a query over the rows of this table; the same query is asked once."""
        if self._stored is None:
            return []
        of_table = f"_table_id = {text_literals([self._table_id])}"
        sql = f"SELECT {columns} FROM stored WHERE {of_table} AND {condition}"
        if sql not in self._results:
            self._results[sql] = query(self._stored, sql)
        return self._results[sql]

    def with_events(self, row_filter: RowFilter, columns: Sequence[str] = SUMMARY) -> list[QuarantinedRow]:
        """Return the rows with events that pass the filter."""
        states, wanted = self._states, row_filter.statuses
        ids = {row_id for row_id, state in states.items() if state.status in wanted}
        if row_filter.ids:
            ids &= set(row_filter.ids)
        stored = self.select(identifiers(columns), _is_among(ids)) if ids else []
        return [
            row
            for row in (_row(each, states[each["row_id"]]) for each in stored)
            if (not row_filter.starts or row.interval_start in row_filter.starts)
            and (not row_filter.reason or any(row_filter.reason in reason for reason in row.reasons))
        ]

    def without_events(self, condition: str, columns: Sequence[str]) -> list[QuarantinedRow]:
        """Return rows that an SQL condition selects."""
        return [_row(stored, RowState()) for stored in self.select(identifiers(columns), condition)]

    def condition_without_events(self, row_filter: RowFilter) -> str:
        """Return the SQL condition of the rows without events that pass the filter; empty if there can be none."""
        if self._stored is None or RowStatus.OPEN not in row_filter.statuses:
            return ""
        conditions = [f"NOT {_is_among(self._states)}"] if self._states else ["true"]
        if row_filter.ids:
            conditions.append(_is_among(row_filter.ids))
        if row_filter.starts:
            conditions.append(f"_interval_start IN ({', '.join(map(timestamp_literal, row_filter.starts))})")
        if row_filter.reason:
            # No spec can contain the character between the reasons.
            conditions.append(f"strpos(array_to_string(reasons, chr(31)), {text_literals([row_filter.reason])}) > 0")
        return " AND ".join(conditions)

    def events_of(self, row_id: str) -> list[dict[str, Any]]:
        """Return all events about one row, oldest first."""
        return self._events.events_of_row(self._table, self._table_id, row_id)

    def add_records(self, rows: Sequence[QuarantinedRow]) -> list[QuarantinedRow]:
        """Return rows that were read by their `SUMMARY` with `record` and `received`."""
        found = self.select(identifiers(("row_id", "record", "received")), _is_among(row.id for row in rows))
        records = {record["row_id"]: record for record in found}
        return [
            replace(row, record=record["record"] or "", received=row.received or record["received"] or "")
            for row in rows
            if (record := records.get(row.id))
        ]

    @cached_property
    def _stored(self) -> DeltaTable | None:
        path = self._paths.quarantine(self._table)
        # Rows of an earlier table with this name, whose folder was removed, do not count.
        return open_table(path) if is_table(path) and is_table(self._paths.table(self._table)) else None

    @cached_property
    def _table_id(self) -> str:
        return table_id(self._paths.table(self._table))

    @cached_property
    def _states(self) -> dict[str, RowState]:
        if self._stored is None:
            return {}
        return row_states(self._events.state_changes(self._table, self._table_id, STATE_COLUMNS))


def _is_among(ids: Iterable[str]) -> str:
    """Return an SQL condition that holds for the rows with these ids.

    They are a single literal, which DataFusion joins. A list of a thousand literals takes 0.15 s to plan, and one of
    some ten thousands ends the process.
    """
    texts = text_literals([_BETWEEN.join(sorted(ids))])
    split = f"SELECT unnest(string_to_array({texts}, {text_literals([_BETWEEN])})) AS id"
    return f"EXISTS (SELECT 1 FROM ({split}) AS among WHERE among.id = stored.row_id)"


def _row(stored: dict[str, Any], state: RowState) -> QuarantinedRow:
    return QuarantinedRow(
        id=stored["row_id"],
        status=state.status,
        reasons=tuple(stored["reasons"] or ()) if state.reasons is None else state.reasons,
        source=stored["source"] or "",
        position=stored["position"],
        interval_start=stored["_interval_start"],
        batch_seq=stored["_batch_seq"],
        first_seen=stored["first_seen"],
        last_seen=stored["last_seen"],
        attempts=state.attempts,
        replayed_in=max(state.replays.values(), default=0),
        fix=state.fix,
        is_decided=state.is_decided,
        record=stored.get("record") or "",
        received=state.received or stored.get("received") or "",
    )


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
        undone: the replays whose rows a restore has removed from the table.
    """

    status: RowStatus = RowStatus.OPEN
    received: str = ""
    fix: str = ""
    reasons: tuple[str, ...] | None = None
    replays: Mapping[str, int] = field(default_factory=dict)
    is_decided: bool = False
    undone: frozenset[str] = frozenset()

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
        case RowEvent.UNDONE:
            waits = RowStatus.FIXED if state.received else RowStatus.OPEN
            return replace(state, status=waits, undone=state.undone | {event["replay"]})
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
    if event["replay"] in state.undone:
        return state
    tried = replace(state, replays={**state.replays, event["replay"]: event["batch_seq"]})
    if RowStatus.REPLAYED in (outcome.value, state.status):
        return replace(tried, status=RowStatus.REPLAYED)
    is_new = event["replay"] not in state.replays
    status = RowStatus.OPEN if state.status is RowStatus.FIXED and is_new else state.status
    return replace(tried, status=status, reasons=tuple(event["reasons"] or ()))

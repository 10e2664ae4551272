"""The quarantined rows of a table: their reasons, their age and their status, read without Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from include.contracts.job.findings import without_value
from include.contracts.job.requests import RowFilter
from include.contracts.row_status import PENDING, RowStatus
from include.control.ledger.resolution import table_id
from include.control.log.stored_tables import is_table, open_table
from include.control.log.table_queries import identifiers, query, text_literals, timestamp_literal
from include.control.quarantine.events import QuarantineEvents, ReceivedRow
from include.control.quarantine.row_states import STATE_COLUMNS, RowState, row_states
from include.paths import LakehousePaths

SUMMARY = ("row_id", "reasons", "source", "position", "_interval_start", "_batch_seq", "first_seen", "last_seen")
"""The columns of a quarantine table that describe a row, without the row itself, which is expensive to read."""

WHOLE = (*SUMMARY, "record", "received")
"""All columns, with the row itself."""

_ORDER = "_batch_seq DESC, coalesce(source, ''), coalesce(position, 0), row_id"
"""The newest batch first, then by the position in the source."""

_GROUP = (
    "reasons, count(*) AS rows, min(first_seen) AS first_seen, min(_interval_start) AS first, "
    "max(_interval_start) AS last, max(_batch_seq) AS batch_seq"
)

_MAX_IDS = 1000
"""The number of ids in one query. With some ten thousands DataFusion ends the process."""


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
    record: str = ""
    received: str = ""

    @property
    def received_row(self) -> ReceivedRow:
        """The row that a replay tries."""
        return ReceivedRow(self.id, self.received, self.fix)


@dataclass(frozen=True)
class Refusal:
    """The rows of one table with the same reason and the same status; a row with two reasons counts for both.

    Attributes:
        reason: `rule: reason`, as the spec states it.
        status: their status.
        rows: their number.
        first_seen: when the first of them was refused first.
        first: start of the first interval with such a row.
        last: start of the last interval with such a row.
        batch_seq: the last batch that refused one.
    """

    reason: str
    status: RowStatus
    rows: int
    first_seen: datetime
    first: datetime
    last: datetime
    batch_seq: int


def refusals(table: str, paths: LakehousePaths, statuses: Sequence[RowStatus] = PENDING) -> list[Refusal]:
    """Return the reasons for which rows of the table are in quarantine, the most common first."""
    rows, row_filter = StoredRows(table, paths), RowFilter(statuses=tuple(statuses))
    groups = defaultdict[tuple[str, RowStatus], list[Refusal]](list)
    for row in rows.with_events(row_filter):
        start = row.interval_start
        for reason in map(without_value, row.reasons):
            part = Refusal(reason, row.status, 1, row.first_seen, start, start, row.batch_seq)
            groups[reason, row.status].append(part)
    for condition in rows.conditions_without_events(row_filter):
        for group in rows.select(_GROUP, f"{condition} GROUP BY reasons"):
            for reason in map(without_value, group.pop("reasons") or ()):
                groups[reason, RowStatus.OPEN].append(Refusal(reason, RowStatus.OPEN, **group))
    merged = [
        Refusal(
            *key,
            rows=sum(part.rows for part in parts),
            first_seen=min(part.first_seen for part in parts),
            first=min(part.first for part in parts),
            last=max(part.last for part in parts),
            batch_seq=max(part.batch_seq for part in parts),
        )
        for key, parts in groups.items()
    ]
    return sorted(merged, key=lambda refusal: (-refusal.rows, refusal.reason))


def quarantined_rows(
    table: str, paths: LakehousePaths, row_filter: RowFilter, columns: Sequence[str] = WHOLE
) -> list[QuarantinedRow]:
    """Return the quarantined rows of the table that pass the filter, the newest batch first."""
    rows = StoredRows(table, paths)
    selected = rows.with_events(row_filter, columns)
    for condition in rows.conditions_without_events(row_filter):
        selected += [_row(stored, RowState()) for stored in rows.select(identifiers(columns), condition)]
    return sorted(selected, key=_sort_key)


def newest_rows(
    table: str, paths: LakehousePaths, row_filter: RowFilter, limit: int, skip: int = 0
) -> tuple[list[QuarantinedRow], int]:
    """Return (`limit` rows of `quarantined_rows` after the first `skip`, the number of all).

    All others are counted, not read.
    """
    rows = StoredRows(table, paths)
    selected = rows.with_events(row_filter)
    count = len(selected)
    for condition in rows.conditions_without_events(row_filter):
        count += rows.select("count(*) AS rows", condition)[0]["rows"]
        newest = rows.select(identifiers(SUMMARY), f"{condition} ORDER BY {_ORDER} LIMIT {skip + limit}")
        selected += [_row(stored, RowState()) for stored in newest]
    return rows.add_records(sorted(selected, key=_sort_key)[skip : skip + limit]), count


def count_by_status(table: str, paths: LakehousePaths) -> Counter[RowStatus]:
    """Return the number of quarantined rows of the table by status."""
    rows, any_row = StoredRows(table, paths), RowFilter(statuses=tuple(RowStatus))
    counts = Counter(row.status for row in rows.with_events(any_row))
    for condition in rows.conditions_without_events(any_row):
        counts[RowStatus.OPEN] += rows.select("count(*) AS rows", condition)[0]["rows"]
    return +counts


def count_old_rows(table: str, paths: LakehousePaths, limit: datetime | None = None) -> tuple[int, datetime | None]:
    """Return (the number of pending rows that were refused first before `limit`, the time of the first).

    Without a limit, all pending rows count. Each run asks this, so that the common answer, none, costs one query.
    """
    rows, is_old = StoredRows(table, paths), f"first_seen < {timestamp_literal(limit)}" if limit else "true"
    if not rows.select("first_seen", f"{is_old} LIMIT 1"):
        return 0, None
    times = [row.first_seen for row in rows.with_events(RowFilter()) if limit is None or row.first_seen < limit]
    count = len(times)
    for condition in rows.conditions_without_events(RowFilter()):
        [group] = rows.select("count(*) AS rows, min(first_seen) AS first_seen", f"{condition} AND {is_old}")
        count += group["rows"]
        times += [group["first_seen"]] if group["rows"] else []
    return count, min(times, default=None)


class StoredRows:
    """The quarantined rows of one table as they are stored, and their events.

    Few rows have events. Those rows are read, and their state is computed in Python. All others are open, and have the
    stored reasons, so that a query selects and counts them.
    """

    def __init__(self, table: str, paths: LakehousePaths) -> None:
        self._table, self._paths = table, paths
        path = paths.quarantine(table)
        # Rows of an earlier table with this name, whose folder was removed, do not count.
        exists = is_table(path) and is_table(paths.table(table))
        self._stored = open_table(path) if exists else None
        self._table_id = table_id(paths.table(table)) if exists else ""

    def select(self, columns: str, condition: str) -> list[dict[str, Any]]:
        """Return the result of a query over the rows of this table."""
        if self._stored is None:
            return []
        of_table = f"_table_id = {text_literals([self._table_id])}"
        return query(self._stored, f"SELECT {columns} FROM stored WHERE {of_table} AND {condition}")

    def with_events(self, row_filter: RowFilter, columns: Sequence[str] = SUMMARY) -> list[QuarantinedRow]:
        """Return the rows with events that pass the filter."""
        ids = sorted(self._states.keys() & set(row_filter.ids) if row_filter.ids else self._states)
        chunks = (self.select(identifiers(columns), f"row_id IN ({text_literals(chunk)})") for chunk in _chunks(ids))
        rows = (_row(stored, self._states[stored["row_id"]]) for chunk in chunks for stored in chunk)
        return [
            row
            for row in rows
            if row.status in row_filter.statuses
            and (not row_filter.starts or row.interval_start in row_filter.starts)
            and (not row_filter.reason or any(row_filter.reason in reason for reason in row.reasons))
        ]

    def conditions_without_events(self, row_filter: RowFilter) -> Iterator[str]:
        """Yield SQL conditions that select the rows without events that pass the filter, each row by one condition."""
        if self._stored is None or RowStatus.OPEN not in row_filter.statuses:
            return
        conditions = ["true"]
        if row_filter.starts:
            conditions.append(f"_interval_start IN ({', '.join(map(timestamp_literal, row_filter.starts))})")
        if row_filter.reason:
            # No spec can contain the character between the reasons.
            conditions.append(f"strpos(array_to_string(reasons, chr(31)), {text_literals([row_filter.reason])}) > 0")
        if row_filter.ids:
            others = sorted(set(row_filter.ids) - self._states.keys())
            yield from (" AND ".join([*conditions, f"row_id IN ({text_literals(chunk)})"]) for chunk in _chunks(others))
            return
        chunks = list(_chunks(sorted(self._states))) or [[]]
        for number, ids in enumerate(chunks):
            start = [f"row_id >= {text_literals(ids[:1])}"] if number > 0 else []
            end = [f"row_id < {text_literals(chunks[number + 1][:1])}"] if number + 1 < len(chunks) else []
            others = [f"row_id NOT IN ({text_literals(ids)})"] if ids else []
            yield " AND ".join([*conditions, *start, *end, *others])

    def add_records(self, rows: Sequence[QuarantinedRow]) -> list[QuarantinedRow]:
        """Return rows that were read by their `SUMMARY` with `record` and `received`."""
        columns = identifiers(("row_id", "record", "received"))
        chunks = (
            self.select(columns, f"row_id IN ({text_literals(ids)})") for ids in _chunks([row.id for row in rows])
        )
        records = {record["row_id"]: record for chunk in chunks for record in chunk}
        return [
            replace(row, record=record["record"] or "", received=row.received or record["received"] or "")
            for row in rows
            if (record := records.get(row.id))
        ]

    @cached_property
    def _states(self) -> dict[str, RowState]:
        if self._stored is None:
            return {}
        return row_states(QuarantineEvents(self._paths).state_changes(self._table, self._table_id, STATE_COLUMNS))


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[first : first + _MAX_IDS] for first in range(0, len(ids), _MAX_IDS))


def _sort_key(row: QuarantinedRow) -> tuple[int, str, int, str]:
    return -row.batch_seq, row.source, row.position or 0, row.id


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
        record=stored.get("record") or "",
        received=state.received or stored.get("received") or "",
    )

"""The quarantined rows of a table: their reasons, their age and their status, read without Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from millrace.contracts.job.findings import without_value
from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.control.log.table_queries import text_literals, timestamp_literal
from millrace.control.quarantine.stored_rows import ORDER, SUMMARY, WHOLE, QuarantinedRow, StoredRows

_GROUP = (
    "reasons, count(*) AS rows, min(first_seen) AS first_seen, min(_interval_start) AS first, "
    "max(_interval_start) AS last, max(_batch_seq) AS batch_seq"
)


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


def refusals(rows: StoredRows, statuses: Sequence[RowStatus] = PENDING) -> list[Refusal]:
    """Return the reasons for which rows of a table are in quarantine, the most common first."""
    row_filter = RowFilter(statuses=tuple(statuses))
    groups = defaultdict[tuple[str, RowStatus], list[Refusal]](list)
    for row in rows.with_events(row_filter):
        start = row.interval_start
        for reason in map(without_value, row.reasons):
            part = Refusal(reason, row.status, 1, row.first_seen, start, start, row.batch_seq)
            groups[reason, row.status].append(part)
    for group in _groups_without_events(rows, row_filter):
        facts = {name: value for name, value in group.items() if name != "reasons"}
        for reason in map(without_value, group["reasons"] or ()):
            groups[reason, RowStatus.OPEN].append(Refusal(reason, RowStatus.OPEN, **facts))
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


def quarantined_rows(rows: StoredRows, row_filter: RowFilter, columns: Sequence[str] = WHOLE) -> list[QuarantinedRow]:
    """Return the quarantined rows of a table that pass the filter, the newest batch first."""
    selected = rows.with_events(row_filter, columns)
    if condition := rows.condition_without_events(row_filter):
        selected += rows.without_events(condition, columns)
    return sorted(selected, key=lambda row: row.place)


def newest_rows(rows: StoredRows, row_filter: RowFilter, limit: int, after: str = "") -> list[QuarantinedRow]:
    """Return the first rows of `quarantined_rows`; all others are not read.

    Args:
        rows: the rows of a table.
        row_filter: which of them count.
        limit: the most rows to return.
        after: begin after the row with this id; empty, or an id that no row has, to begin with the first.
    """
    before = quarantined_rows(rows, RowFilter(ids=(after,), statuses=tuple(RowStatus)), SUMMARY) if after else []
    selected = [row for row in rows.with_events(row_filter) if not before or row.place > before[0].place]
    further = _after(before[0]) if before else "true"
    if condition := rows.condition_without_events(row_filter):
        selected += rows.without_events(f"{condition} AND {further} ORDER BY {ORDER} LIMIT {limit}", SUMMARY)
    return rows.add_records(sorted(selected, key=lambda row: row.place)[:limit])


def count_rows(rows: StoredRows, row_filter: RowFilter) -> int:
    """Return the number of quarantined rows of a table that pass the filter."""
    condition = rows.condition_without_events(row_filter)
    others: int = rows.select("count(*) AS rows", condition)[0]["rows"] if condition else 0
    return len(rows.with_events(row_filter)) + others


def count_pending(rows: StoredRows) -> int:
    """Return the number of pending rows of a table, by the query of `refusals`."""
    pending = RowFilter()
    others: int = sum(group["rows"] for group in _groups_without_events(rows, pending))
    return len(rows.with_events(pending)) + others


def count_by_status(rows: StoredRows) -> Counter[RowStatus]:
    """Return the number of quarantined rows of a table by status."""
    any_row = RowFilter(statuses=tuple(RowStatus))
    counts = Counter(row.status for row in rows.with_events(any_row))
    counts[RowStatus.OPEN] += count_rows(rows, any_row) - counts.total()
    return +counts


def count_old_rows(rows: StoredRows, limit: datetime | None = None) -> tuple[int, datetime | None]:
    """Return (the number of pending rows that were refused first before `limit`, the time of the first).

    Without a limit, all pending rows count. Each run asks this, so that the common answer, none, costs one query.
    """
    is_old = f"first_seen < {timestamp_literal(limit)}" if limit else "true"
    if not rows.select("first_seen", f"{is_old} LIMIT 1"):
        return 0, None
    times = [row.first_seen for row in rows.with_events(RowFilter()) if limit is None or row.first_seen < limit]
    count = len(times)
    if condition := rows.condition_without_events(RowFilter()):
        [group] = rows.select("count(*) AS rows, min(first_seen) AS first_seen", f"{condition} AND {is_old}")
        count += group["rows"]
        times += [group["first_seen"]] if group["rows"] else []
    return count, min(times, default=None)


def _groups_without_events(rows: StoredRows, row_filter: RowFilter) -> list[dict[str, Any]]:
    """Return the columns of `_GROUP` for the rows without events that pass the filter."""
    condition = rows.condition_without_events(row_filter)
    return rows.select(_GROUP, f"{condition} GROUP BY reasons") if condition else []


def _after(row: QuarantinedRow) -> str:
    """Return an SQL condition that holds for the rows after this one in `ORDER`."""
    source, row_id = text_literals([row.source]), text_literals([row.id])
    position, of_source = f"coalesce(position, 0) = {row.position or 0}", f"coalesce(source, '') = {source}"
    of_position = f"coalesce(position, 0) > {row.position or 0} OR ({position} AND row_id > {row_id})"
    of_batch = f"coalesce(source, '') > {source} OR ({of_source} AND ({of_position}))"
    return f"(_batch_seq < {row.batch_seq} OR (_batch_seq = {row.batch_seq} AND ({of_batch})))"

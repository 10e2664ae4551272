"""The quarantine as people ask of it: which rows, why, since when, and where each of them stands. No Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from deltalake.exceptions import TableNotFoundError

from include.contracts.job.quarantine_request import RowFilter
from include.contracts.job.refusal_reasons import without_value
from include.contracts.row_status import PENDING, RowStatus
from include.control.ledger.resolution import table_id
from include.control.log.stored_tables import is_table, open_table
from include.control.log.table_queries import identifiers, moment, query, texts
from include.control.quarantine.events import QuarantineEvents, ReceivedRow
from include.control.quarantine.row_states import STATE_COLUMNS, RowState, row_states
from include.paths import LakehousePaths

SUMMARY = ("row_id", "reasons", "source", "position", "_interval_start", "_batch_seq", "first_seen", "last_seen")
"""The columns of a quarantine table that say which row it is; the row itself is what costs."""

WHOLE = (*SUMMARY, "record", "received")
"""Those, and the row itself."""


@dataclass(frozen=True)
class QuarantinedRow:
    """One row.

    Attributes:
        id: what it is known by, the same however often its interval is read again.
        status: where it stands.
        reasons: why it is refused: by the last replay that tried it, else by the batch that read it.
        source: the landing file it came from, or the Kafka topic and partition; empty where that is not known.
        position: its record number in that file, or its Kafka offset, where known.
        interval_start: start of the interval that brought it.
        batch_seq: the last batch that refused it.
        first_seen: when it was refused first.
        last_seen: when it was refused last.
        attempts: how many replays tried it.
        replayed_in: the batch of the last of them; 0 for none.
        fix: what was mended in it; empty for a row that is as its source delivered it.
        record: the row as the table's rules saw it, as JSON, or the text that could not be parsed.
        received: the row as the table's writer receives it, mended if it was, as JSON.
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
    def to_try(self) -> ReceivedRow:
        """What a replay tries."""
        return ReceivedRow(self.id, self.received, self.fix)


@dataclass(frozen=True)
class Refusal:
    """The rows of one table that were refused for one reason and stand alike; a row with two reasons counts for both.

    Attributes:
        reason: `rule: reason`, as the spec states it.
        status: where they stand.
        rows: how many.
        first_seen: when the oldest was refused first.
        first: start of the first interval that brought one.
        last: start of the last one.
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
    """The reasons for which rows of the table are in quarantine, the commonest first."""
    alike: dict[tuple[str, RowStatus], list[QuarantinedRow]] = defaultdict(list)
    for row in quarantined_rows(table, paths, RowFilter(statuses=tuple(statuses)), SUMMARY):
        for reason in map(without_value, row.reasons):
            alike[reason, row.status].append(row)
    return sorted((_refusal(*key, rows) for key, rows in alike.items()), key=lambda one: (-one.rows, one.reason))


def quarantined_rows(
    table: str, paths: LakehousePaths, wanted: RowFilter, columns: Sequence[str] = WHOLE
) -> list[QuarantinedRow]:
    """The quarantined rows of the table that the filter lets through, the newest batch first."""
    states = _states(table, paths)
    rows = (_row(one, states.get(one["row_id"], RowState())) for one in _stored(table, paths, columns))
    found = [row for row in rows if _is_wanted(row, wanted)]
    return sorted(found, key=lambda row: (-row.batch_seq, row.source, row.position or 0, row.id))


def with_records(table: str, paths: LakehousePaths, rows: Sequence[QuarantinedRow]) -> list[QuarantinedRow]:
    """Rows that were read by their `SUMMARY`, each with the row itself: only of these is it read."""
    ids = texts(row.id for row in rows)
    stored = _stored(table, paths, ("row_id", "record", "received"), f"row_id IN ({ids})") if rows else []
    held = {one["row_id"]: one for one in stored}
    return [
        replace(row, record=held[row.id]["record"] or "", received=row.received or held[row.id]["received"] or "")
        for row in rows
        if row.id in held
    ]


def count_by_status(table: str, paths: LakehousePaths) -> Counter[RowStatus]:
    """How many quarantined rows of the table stand so."""
    states = _states(table, paths)
    return Counter(states.get(row["row_id"], RowState()).status for row in _stored(table, paths, ("row_id",)))


def waiting_since_before(table: str, paths: LakehousePaths, limit: datetime) -> list[datetime]:
    """When those rows were refused first that wait for somebody, and were seen before `limit`; each run asks for it."""
    old = _stored(table, paths, ("row_id", "first_seen"), f"first_seen < {moment(limit)}")
    states = _states(table, paths) if old else {}
    return [row["first_seen"] for row in old if states.get(row["row_id"], RowState()).status in PENDING]


def _states(table: str, paths: LakehousePaths) -> dict[str, RowState]:
    try:
        target = table_id(paths.table(table))
    except TableNotFoundError:
        return {}
    return row_states(QuarantineEvents(paths).of(table, target, STATE_COLUMNS))


def _stored(table: str, paths: LakehousePaths, columns: Sequence[str], where: str = "true") -> list[dict[str, Any]]:
    """The rows as they are stored; an earlier table of the name, whose folder was removed, has left none."""
    path = paths.quarantine(table)
    if not is_table(path) or not is_table(paths.table(table)):
        return []
    mine = f"_table_id = {texts([table_id(paths.table(table))])} AND {where}"
    return query(open_table(path), f"SELECT {identifiers(columns)} FROM stored WHERE {mine}")


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


def _is_wanted(row: QuarantinedRow, wanted: RowFilter) -> bool:
    return (
        row.status in wanted.statuses
        and (not wanted.ids or row.id in wanted.ids)
        and (not wanted.starts or row.interval_start in wanted.starts)
        and (not wanted.reason or any(wanted.reason in one for one in row.reasons))
    )


def _refusal(reason: str, status: RowStatus, rows: Sequence[QuarantinedRow]) -> Refusal:
    starts = [row.interval_start for row in rows]
    first_seen, last = min(row.first_seen for row in rows), max(row.batch_seq for row in rows)
    return Refusal(reason, status, len(rows), first_seen, min(starts), max(starts), last)

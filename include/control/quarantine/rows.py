"""The quarantine as people ask of it: which rows, why, since when, and where each of them stands. No Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

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

_PLACE = "_batch_seq DESC, coalesce(source, ''), coalesce(position, 0), row_id"
"""The newest batch first, then where its source has a row."""

_ALIKE = (
    "reasons, count(*) AS rows, min(first_seen) AS first_seen, min(_interval_start) AS first, "
    "max(_interval_start) AS last, max(_batch_seq) AS batch_seq"
)

_NAMED = 1000


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

    def with_those_of(self, other: Refusal) -> Refusal:
        """These rows and those of another one that was refused for the same reason and stands alike."""
        return replace(
            self,
            rows=self.rows + other.rows,
            first_seen=min(self.first_seen, other.first_seen),
            first=min(self.first, other.first),
            last=max(self.last, other.last),
            batch_seq=max(self.batch_seq, other.batch_seq),
        )


def refusals(table: str, paths: LakehousePaths, statuses: Sequence[RowStatus] = PENDING) -> list[Refusal]:
    """The reasons for which rows of the table are in quarantine, the commonest first."""
    rows, wanted = StoredRows(table, paths), RowFilter(statuses=tuple(statuses))
    known = [_refusal_of(reason, row) for row in rows.decided(wanted) for reason in row.reasons]
    for part in rows.undecided(wanted):
        for one in rows.ask(_ALIKE, f"{part} GROUP BY reasons"):
            told = {name: one[name] for name in ("rows", "first_seen", "first", "last", "batch_seq")}
            known += [Refusal(without_value(reason), RowStatus.OPEN, **told) for reason in one["reasons"] or ()]
    alike: dict[tuple[str, RowStatus], Refusal] = {}
    for refusal in known:
        key = refusal.reason, refusal.status
        alike[key] = alike[key].with_those_of(refusal) if key in alike else refusal
    return sorted(alike.values(), key=lambda one: (-one.rows, one.reason))


def quarantined_rows(
    table: str, paths: LakehousePaths, wanted: RowFilter, columns: Sequence[str] = WHOLE
) -> list[QuarantinedRow]:
    """The quarantined rows of the table that the filter lets through, the newest batch first."""
    rows = StoredRows(table, paths)
    found = rows.decided(wanted, columns)
    for part in rows.undecided(wanted):
        found += [_row(one, RowState()) for one in rows.ask(identifiers(columns), part)]
    return sorted(found, key=_place)


def newest_rows(table: str, paths: LakehousePaths, wanted: RowFilter, most: int) -> tuple[list[QuarantinedRow], int]:
    """(The first so many of `quarantined_rows`, how many there are): the others are counted, and not read."""
    rows = StoredRows(table, paths)
    found = rows.decided(wanted)
    count = len(found)
    for part in rows.undecided(wanted):
        count += rows.ask("count(*) AS rows", part)[0]["rows"]
        first = rows.ask(identifiers(SUMMARY), f"{part} ORDER BY {_PLACE} LIMIT {most}")
        found += [_row(one, RowState()) for one in first]
    return rows.whole(sorted(found, key=_place)[:most]), count


def count_by_status(table: str, paths: LakehousePaths) -> Counter[RowStatus]:
    """How many quarantined rows of the table stand so."""
    rows, every = StoredRows(table, paths), RowFilter(statuses=tuple(RowStatus))
    counted = Counter(row.status for row in rows.decided(every))
    for part in rows.undecided(every):
        counted[RowStatus.OPEN] += sum(one["rows"] for one in rows.ask("count(*) AS rows", part))
    return +counted


def waiting_since_before(table: str, paths: LakehousePaths, limit: datetime) -> tuple[int, datetime | None]:
    """(How many rows that wait for somebody were seen before `limit`, when the oldest was); each run asks for it."""
    rows, old = StoredRows(table, paths), f"first_seen < {moment(limit)}"
    if not rows.ask("first_seen", f"{old} LIMIT 1"):
        return 0, None
    seen = [row.first_seen for row in rows.decided(RowFilter()) if row.first_seen < limit]
    count = len(seen)
    for part in rows.undecided(RowFilter()):
        [told] = rows.ask("count(*) AS rows, min(first_seen) AS first_seen", f"{part} AND {old}")
        count += told["rows"]
        seen += [told["first_seen"]] if told["rows"] else []
    return count, min(seen, default=None)


def ids_beginning(table: str, paths: LakehousePaths, beginning: str) -> list[str]:
    """The ids of quarantined rows that begin so."""
    found = StoredRows(table, paths).ask("row_id", f"starts_with(row_id, {texts([beginning])})")
    return [one["row_id"] for one in found]


class StoredRows:
    """The quarantined rows of one table as they are stored, beside what became of them.

    Few of them were ever decided about. Those are read and judged one by one; all others are open, for the reasons that
    are stored, so that a query chooses and counts them.
    """

    def __init__(self, table: str, paths: LakehousePaths) -> None:
        self._table, self._paths = table, paths
        path = paths.quarantine(table)
        # An earlier table of the name, whose folder was removed, has left none.
        is_there = is_table(path) and is_table(paths.table(table))
        self._stored = open_table(path) if is_there else None
        self._id = table_id(paths.table(table)) if is_there else ""

    def ask(self, columns: str, where: str) -> list[dict[str, Any]]:
        """What a query answers of this table's rows."""
        if self._stored is None:
            return []
        return query(self._stored, f"SELECT {columns} FROM stored WHERE _table_id = {texts([self._id])} AND {where}")

    def decided(self, wanted: RowFilter, columns: Sequence[str] = SUMMARY) -> list[QuarantinedRow]:
        """The wanted rows that somebody or a replay has decided about."""
        ids = sorted(self._states.keys() & set(wanted.ids)) if wanted.ids else self._decided
        stored = (one for some in _some(ids) for one in self.ask(identifiers(columns), f"row_id IN ({texts(some)})"))
        rows = (_row(one, self._states[one["row_id"]]) for one in stored)
        return [row for row in rows if _is_wanted(row, wanted)]

    def undecided(self, wanted: RowFilter) -> Iterator[str]:
        """Conditions that choose the other wanted rows, each of them by one condition."""
        if self._stored is None or RowStatus.OPEN not in wanted.statuses:
            return
        meant = _conditions(wanted)
        if wanted.ids:
            others = sorted(set(wanted.ids) - self._states.keys())
            yield from (" AND ".join([*meant, f"row_id IN ({texts(some)})"]) for some in _some(others))
            return
        parts = list(_some(self._decided)) or [[]]
        for at, ids in enumerate(parts):
            begin = [f"row_id >= {texts(ids[:1])}"] if at > 0 else []
            end = [f"row_id < {texts(parts[at + 1][:1])}"] if at + 1 < len(parts) else []
            others = [f"row_id NOT IN ({texts(ids)})"] if ids else []
            yield " AND ".join([*meant, *begin, *end, *others])

    def whole(self, rows: Sequence[QuarantinedRow]) -> list[QuarantinedRow]:
        """Rows that were read by their `SUMMARY`, each with the row itself: only of these is it read."""
        columns = identifiers(("row_id", "record", "received"))
        parts = _some([row.id for row in rows])
        stored = [one for some in parts for one in self.ask(columns, f"row_id IN ({texts(some)})")]
        held = {one["row_id"]: one for one in stored}
        return [
            replace(row, record=held[row.id]["record"] or "", received=row.received or held[row.id]["received"] or "")
            for row in rows
            if row.id in held
        ]

    @cached_property
    def _states(self) -> dict[str, RowState]:
        if self._stored is None:
            return {}
        return row_states(QuarantineEvents(self._paths).decisions(self._table, self._id, STATE_COLUMNS))

    @cached_property
    def _decided(self) -> list[str]:
        return sorted(self._states)


def _conditions(wanted: RowFilter) -> list[str]:
    """What a query asks of rows that nobody has decided about."""
    starts = f"_interval_start IN ({', '.join(map(moment, wanted.starts))})" if wanted.starts else "true"
    # Between reasons stands a character that no spec can hold.
    reason = f"strpos(array_to_string(reasons, chr(31)), {texts([wanted.reason])}) > 0" if wanted.reason else "true"
    return [starts, reason]


def _some(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Ids as many at a time as a query can name: DataFusion ends the process where they are some ten thousands."""
    return (ids[first : first + _NAMED] for first in range(0, len(ids), _NAMED))


def _place(row: QuarantinedRow) -> tuple[int, str, int, str]:
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


def _is_wanted(row: QuarantinedRow, wanted: RowFilter) -> bool:
    return (
        row.status in wanted.statuses
        and (not wanted.ids or row.id in wanted.ids)
        and (not wanted.starts or row.interval_start in wanted.starts)
        and (not wanted.reason or any(wanted.reason in one for one in row.reasons))
    )


def _refusal_of(reason: str, row: QuarantinedRow) -> Refusal:
    start = row.interval_start
    return Refusal(without_value(reason), row.status, 1, row.first_seen, start, start, row.batch_seq)

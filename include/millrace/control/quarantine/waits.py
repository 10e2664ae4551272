"""The quarantined rows that wait for another table: a run replays them by itself once that table has their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from millrace.contracts.counted import counted
from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import RowStatus
from millrace.contracts.spec.duration import AGE
from millrace.contracts.spec.table_spec import AnySpec
from millrace.contracts.time_format import MINUTE
from millrace.control.ledger.states.table_state import StatePart, TableStates, tolerate_state_errors
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.log.batch import PinnedTable, StreamPosition
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import SUMMARY, QuarantinedRow, StoredRows
from millrace.paths import LakehousePaths


@dataclass(frozen=True)
class Wait:
    """What a quarantined row waits for.

    Attributes:
        tables: the tables that lack its values.
        until: after that time it waits for a person; None for no limit.
    """

    tables: tuple[str, ...]
    until: datetime | None = None

    def __str__(self) -> str:
        """Return the wait in words.

        >>> str(Wait(("silver.customers",)))
        'waits for silver.customers'
        """
        until = f" until {self.until:{MINUTE}} UTC" if self.until else ""
        return f"waits for {' and '.join(self.tables)}{until}"


class TriedRows(StatePart):
    """What the waiting rows were tried with last, when none of them passed; it keeps runs from trying it again.

    Attributes:
        key: the last batch, the spec, and the versions of the other tables.
    """

    key: str


def wait_of(spec: AnySpec, row: QuarantinedRow, now: datetime) -> Wait | None:
    """Return what a row waits for; None if it needs a person.

    A row needs a person if it fails another rule too, if it has waited as long as its rule allows, or if somebody has
    ever fixed, discarded or reopened it.
    """
    by_reason = [[rule for rule in spec.references if is_reason_of(rule.rule, reason)] for reason in row.reasons]
    if row.status is not RowStatus.OPEN or row.is_decided or not (by_reason and all(by_reason)):
        return None
    rules = list(chain.from_iterable(by_reason))
    limits = [AGE.parse(rule.arguments["wait_at_most"]) for rule in rules if "wait_at_most" in rule.arguments]
    until = row.first_seen + min(limits) if limits else None
    if until and until <= now:
        return None
    return Wait(tuple(dict.fromkeys(table for rule in rules for table in rule.other_tables)), until)


def is_reason_of(rule: str, reason: str) -> bool:
    """Whether `reason` is that of a row which the rule has refused.

    >>> is_reason_of("expect_a(b in silver.c)", "expect_a(b in silver.c): no such b")
    True
    """
    return reason == rule or reason.startswith(f"{rule}: ")


def rows_that_wait(
    spec: AnySpec, rows: StoredRows, now: datetime, columns: Sequence[str] = SUMMARY
) -> list[QuarantinedRow]:
    """Return the quarantined rows that wait for another table, in the order in which they were refused."""
    found: dict[str, QuarantinedRow] = {}
    for rule in spec.references:
        row_filter = RowFilter(reason=rule.rule, statuses=(RowStatus.OPEN,))
        found |= {row.id: row for row in quarantined_rows(rows, row_filter, columns) if wait_of(spec, row, now)}
    return sorted(found.values(), key=lambda row: (row.batch_seq, row.id))


def rows_to_try(
    spec: AnySpec,
    position: StreamPosition | None,
    pinned: Mapping[str, PinnedTable],
    paths: LakehousePaths,
    now: datetime,
    columns: Sequence[str] = SUMMARY,
) -> list[QuarantinedRow]:
    """Return the waiting rows, unless all of them were tried with these versions of the other tables already.

    A batch tries the rows that wait before it reads new ones. So if the last batch has pinned the same versions by the
    same spec, every row that waits was tried with them; but not if it was a replay, which tries only some rows.
    """
    if position is None or position.last is None or not spec.references:
        return []
    last = position.last.intent
    if last.sources.references == pinned and last.spec_hash == spec.spec_hash and not last.sources.replay:
        return []
    states = TableStates(paths)
    tried = states.read(spec.table, TriedRows)
    if _has_none(states.read(spec.table, WaitingRows)) or (tried and tried.key == _tried_key(spec, position, pinned)):
        return []
    return rows_that_wait(spec, StoredRows(spec.table, paths), now, columns)


def tried_in_words(spec: AnySpec, rows: Sequence[QuarantinedRow]) -> str:
    """Return what a run does about rows that may pass now, as a part of its plan; empty for no rows."""
    tables = ", ".join(dict.fromkeys(table for rule in spec.references for table in rule.other_tables))
    waiting = counted(len(rows), "waiting row refers", "waiting rows refer")
    return f"; looks whether {tables} has what {waiting} to" if rows else ""


def wait_note(spec: AnySpec, paths: LakehousePaths, now: datetime) -> tuple[str, ...]:
    """Return a note on how many rows of a table wait for which other tables; nothing if none does."""
    if not spec.references or _has_none(TableStates(paths).read(spec.table, WaitingRows)):
        return ()
    waits = [wait_of(spec, row, now) for row in rows_that_wait(spec, StoredRows(spec.table, paths), now)]
    tables = dict.fromkeys(table for wait in waits if wait for table in wait.tables)
    rows = counted(len(waits), f"row of {spec.table} waits", f"rows of {spec.table} wait")
    by_itself = "by itself" if len(waits) == 1 else "by themselves"
    return (f"{rows} for {' and '.join(tables)}, and will be replayed {by_itself}",) if waits else ()


def _has_none(waiting: WaitingRows | None) -> bool:
    """Whether it is known that no row is in quarantine, so that nobody need open it."""
    return waiting is not None and not waiting.closing and not waiting.rows


def record_tried(
    spec: AnySpec, position: StreamPosition, pinned: Mapping[str, PinnedTable], paths: LakehousePaths
) -> None:
    """Record that no waiting row passes with these versions of the other tables."""
    tried = TriedRows(table_id=position.table_id, key=_tried_key(spec, position, pinned))
    with tolerate_state_errors(spec.table):
        TableStates(paths).change(spec.table, (TriedRows, lambda _: tried))


def _tried_key(spec: AnySpec, position: StreamPosition, pinned: Mapping[str, PinnedTable]) -> str:
    versions = (f"{table} {pin.table_id} {pin.version}" for table, pin in sorted(pinned.items()))
    token = position.last.token if position.last else ""
    return "/".join((token, spec.spec_hash, *versions))

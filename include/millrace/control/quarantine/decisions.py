"""The decisions of people to discard quarantined rows, or to reopen discarded ones."""

from __future__ import annotations

from collections.abc import Sequence

from millrace.contracts.row_status import PENDING, RowStatus
from millrace.control.ledger.resolution import table_id
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.control.quarantine.stored_rows import QuarantinedRow
from millrace.control.quarantine.waiting import recount_waiting
from millrace.paths import LakehousePaths

BEFORE = {RowEvent.DISCARDED: PENDING, RowEvent.REOPENED: (RowStatus.DISCARDED,)}
"""Decision -> the statuses that rows must have before it."""


def record_decision(
    event: RowEvent, table: str, rows: Sequence[QuarantinedRow], decision: Decision, paths: LakehousePaths
) -> None:
    """Record a decision about rows of a table, and count the rows that wait after it; without rows do nothing."""
    if not rows:
        return
    target = table_id(paths.table(table))
    with recount_waiting(table, target, paths):
        QuarantineEvents(paths).record(event, table, target, [row.id for row in rows], decision)

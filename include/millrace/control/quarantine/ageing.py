"""The warning about rows that have waited in quarantine for longer than the spec of their table allows."""

from __future__ import annotations

from datetime import datetime

from millrace.contracts.counted import counted
from millrace.contracts.spec.duration import RETENTION
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.quarantine.rows import count_old_rows
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.paths import LakehousePaths


def ageing_note(spec: AnySpec, paths: LakehousePaths, now: datetime) -> tuple[str, ...]:
    """Return a note if rows of the table have waited for longer than `quarantine.warn_after`; else nothing."""
    if isinstance(spec, GoldSpec):
        return ()
    limit = now - RETENTION.parse(spec.quarantine.warn_after)
    waiting = TableStates(paths).read(spec.table, WaitingRows)
    if waiting and not waiting.closing and (waiting.oldest is None or waiting.oldest >= limit):
        return ()  # Each run asks this: it opens the quarantine only if rows are late, or nobody has counted them.
    rows, oldest = count_old_rows(StoredRows(spec.table, paths), limit)
    if oldest is None:
        return ()
    wait = counted(rows, f"row of {spec.table} waits", f"rows of {spec.table} wait")
    return (
        f"{wait} in quarantine for more than {spec.quarantine.warn_after}, the first "
        f"since {oldest:%Y-%m-%d}: lakehouse quarantine show {spec.table}, then fix, replay or discard them",
    )

"""Keep the number of waiting rows in the state of a table, so that nobody opens its quarantine to show it (ADR 25)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from include.control.ledger.states.table_state import TableStates, tolerate_state_errors
from include.control.ledger.states.waiting_rows import WaitingRows
from include.control.quarantine.rows import count_old_rows
from include.control.quarantine.stored_rows import StoredRows
from include.paths import LakehousePaths


def waiting_after_batch(
    table: str, table_id: str, paths: LakehousePaths, quarantined: int, stored: WaitingRows | None
) -> WaitingRows | None:
    """Return the waiting rows after a batch that has quarantined some rows; None if they cannot be counted.

    Where none waited before and the batch has refused none, nothing is read.
    """
    if stored and stored.table_id == table_id and not stored.rows and not quarantined:
        return stored
    waiting = None
    with tolerate_state_errors(table):
        waiting = count_waiting(table, table_id, paths)
    return waiting


def count_waiting(table: str, table_id: str, paths: LakehousePaths) -> WaitingRows:
    """Count the waiting rows of a table in its quarantine."""
    rows, oldest = count_old_rows(StoredRows(table, paths))
    return WaitingRows(table_id=table_id, rows=rows, oldest=oldest)


@contextmanager
def recount_waiting(table: str, table_id: str, paths: LakehousePaths) -> Iterator[None]:
    """Count the waiting rows again after a decision about some of them, which the block records.

    The number is removed before the block: whoever dies in it leaves no wrong number.
    """
    states = TableStates(paths)
    with tolerate_state_errors(table):
        states.change(table, (WaitingRows, lambda _: None))
    yield
    with tolerate_state_errors(table):
        states.change(table, (WaitingRows, lambda _: count_waiting(table, table_id, paths)))

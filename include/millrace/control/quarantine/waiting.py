"""Keep the number of waiting rows in the state of a table, so that nobody opens its quarantine to show it (ADR 25)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from millrace.control.ledger.states.table_state import TableStates, tolerate_state_errors
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.log.batch import Winner
from millrace.control.log.delta_log import commit_versions, read_commit
from millrace.control.quarantine.rows import count_old_rows
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.paths import LakehousePaths


@dataclass(frozen=True)
class BatchWaiting:
    """The `WaitingChange` of a batch.

    The rows that a batch has added to the quarantine are added to the stored number, if the batch alone has changed
    the quarantine since that was counted. Otherwise all are counted again.

    Attributes:
        winner: the batch.
        paths: the lakehouse.
        added: the rows that it has added to the quarantine; None if it may have changed the quarantine in other ways.
    """

    winner: Winner
    paths: LakehousePaths
    added: int | None

    @property
    def changes(self) -> bool:
        """Whether the batch may have changed the quarantine."""
        return self.added != 0

    def begin(self, stored: WaitingRows | None) -> WaitingRows | None:
        """Mark the number as that before this batch; remove it if the batch does not say how it changes it."""
        return stored.model_copy(update={"closing": self.winner.token}) if stored and self._follows(stored) else None

    def end(self, stored: WaitingRows | None) -> WaitingRows | None:
        """Return the waiting rows after the batch; None if they cannot be counted."""
        table, waiting = self.winner.intent.table, None
        with tolerate_state_errors(table):
            waiting = self._after(stored) if stored and self._follows(stored) else None
            waiting = waiting or count_waiting(table, self.winner.intent.table_id, self.paths)
        return waiting

    def _follows(self, stored: WaitingRows) -> bool:
        """Whether the number after the batch may follow from the stored one."""
        is_of_table = stored.table_id == self.winner.intent.table_id
        return is_of_table and self.added is not None and stored.closing in ("", self.winner.token)

    def _after(self, stored: WaitingRows) -> WaitingRows | None:
        """Return the number after the batch; None if it does not follow from the stored one."""
        if not self.added:
            return None if stored.closing else stored
        if not stored.rows:
            return None  # Only the quarantine says when the first of the new rows was refused.
        quarantine = self.paths.quarantine(self.winner.intent.table)
        newest = max(commit_versions(quarantine, stored.upto - 1), default=-1)
        if newest == stored.upto:
            return stored.model_copy(update={"closing": ""})
        commit = read_commit(quarantine, newest) if newest == stored.upto + 1 else None
        if commit is None or commit.metadata.get("token") != self.winner.token:
            return None
        return stored.model_copy(update={"rows": stored.rows + self.added, "upto": newest, "closing": ""})


def count_waiting(table: str, table_id: str, paths: LakehousePaths) -> WaitingRows:
    """Count the waiting rows of a table in its quarantine."""
    stored = StoredRows(table, paths)
    rows, oldest = count_old_rows(stored)
    return WaitingRows(table_id=table_id, rows=rows, oldest=oldest, upto=stored.version)


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

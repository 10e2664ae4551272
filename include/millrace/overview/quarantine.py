"""The quarantine of a table: why its rows were refused, for how long they wait, and what happened to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from millrace.contracts.job.findings import without_value
from millrace.contracts.job.requests import RowFilter
from millrace.contracts.restricted import EVERYTHING_RESTRICTED, RestrictedColumns
from millrace.contracts.row_status import RowStatus
from millrace.contracts.spec.duration import RETENTION
from millrace.contracts.spec.table_spec import BronzeSpec, SilverSpec
from millrace.control.quarantine.rows import Refusal, count_old_rows, count_pending, quarantined_rows, refusals
from millrace.control.quarantine.stored_rows import QuarantinedRow, StoredRows
from millrace.control.quarantine.waits import rows_that_wait


@dataclass(frozen=True)
class Waiting:
    """The rows of a table that wait in quarantine, without any of their values.

    Attributes:
        warn_after: for how long the spec lets a row wait.
        reasons: the reasons with their rows, the most common first; a row with two reasons counts for both.
        rows: the number of waiting rows.
        old_rows: the number of those that have waited for longer.
        oldest: when the first of them was refused first; None if there are none.
        by_itself: the number of those that need nobody: a run replays them once another table has their values.
    """

    warn_after: str
    reasons: Sequence[Refusal] = ()
    rows: int = 0
    old_rows: int = 0
    oldest: datetime | None = None
    by_itself: int = 0

    @property
    def answer(self) -> str:
        """One sentence: how many rows wait, and whether they have waited for too long.

        >>> Waiting("7 days").answer
        'No row waits in quarantine.'
        """
        if not self.rows:
            return "No row waits in quarantine."
        rows = "1 row waits" if self.rows == 1 else f"{self.rows:,} rows wait"
        kinds = len({refusal.reason for refusal in self.reasons})
        why = f"for {kinds} different reasons" if kinds > 1 else "for one reason"
        return f"{rows} in quarantine, {why}; {self._how_long}.{self._for_tables}"

    @property
    def _for_tables(self) -> str:
        if not self.by_itself:
            return ""
        waits, needs = ("waits", "needs") if self.by_itself == 1 else ("wait", "need")
        return f" {self.by_itself:,} of them {waits} for another table and {needs} nobody."

    @property
    def _how_long(self) -> str:
        if not self.old_rows:
            return f"{'it has' if self.rows == 1 else 'all have'} waited for less than {self.warn_after}"
        late = "all" if self.old_rows == self.rows else f"{self.old_rows:,}"
        return f"{late} of them {'has' if self.old_rows == 1 else 'have'} waited for more than {self.warn_after}"


@dataclass(frozen=True)
class ShownRows:
    """Shows quarantined rows without values of restricted columns.

    Attributes:
        own: the restricted columns of the table.
        received: those of the rows as it receives them.
    """

    own: RestrictedColumns
    received: RestrictedColumns

    @property
    def hides_values(self) -> bool:
        """Whether any column is restricted."""
        return bool(self.own or self.received)

    def row(self, row: QuarantinedRow) -> QuarantinedRow:
        """Return a row as it may be shown; nothing of a fixed one, whose fix may have copied a value elsewhere."""
        own, received = self.own.before(self.received), self.received
        if row.fix and self.hides_values:
            own = received = EVERYTHING_RESTRICTED
        record, shown = own.shown_record(row.record), received.shown_record(row.received)
        return replace(row, reasons=self._reasons(row.reasons, row.fix), record=record, received=shown)

    def history(self, history: RowHistory) -> RowHistory:
        """Return the history of a row as it may be shown."""
        fix = history.row.fix
        events = [{**event, "reasons": self._reasons(event["reasons"], fix)} for event in history.events]
        return RowHistory(self.row(history.row), events)

    def _reasons(self, reasons: Sequence[str] | None, fix: str) -> tuple[str, ...]:
        show = without_value if fix and self.hides_values else self.own.shown_reason
        return tuple(map(show, reasons or ()))


@dataclass(frozen=True)
class RowHistory:
    """One quarantined row, with everything that happened to it.

    Attributes:
        row: the row.
        events: its events in `ops.quarantine`, oldest first.
    """

    row: QuarantinedRow
    events: Sequence[Mapping[str, Any]]


def waiting_rows(spec: BronzeSpec | SilverSpec, rows: StoredRows, now: datetime) -> Waiting:
    """Read why and for how long rows of a table wait."""
    warn_after = spec.quarantine.warn_after
    count = count_pending(rows)
    if not count:
        return Waiting(warn_after)
    reasons = refusals(rows)
    oldest, limit = min(each.first_seen for each in reasons), now - RETENTION.parse(warn_after)
    old_rows = count_old_rows(rows, limit)[0] if oldest < limit else 0
    by_itself = len(rows_that_wait(spec, rows, now))
    return Waiting(warn_after, reasons, count, old_rows, oldest, by_itself)


def row_history(rows: StoredRows, row_id: str) -> RowHistory | None:
    """Read one quarantined row with its history; None if there is no such row."""
    found = quarantined_rows(rows, RowFilter(ids=(row_id,), statuses=tuple(RowStatus)))
    if not found:
        return None
    return RowHistory(found[0], rows.events_of(row_id))

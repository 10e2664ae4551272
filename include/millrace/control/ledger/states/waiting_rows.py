"""How many rows of a table wait in quarantine, and since when: a part of its state (ADR 25)."""

from __future__ import annotations

from typing import Protocol

from millrace.contracts.interval import Instant
from millrace.control.ledger.states.table_state import StatePart


class WaitingRows(StatePart):
    """The rows of a table's quarantine that somebody still has to work on.

    Attributes:
        rows: their number.
        oldest: when the first of them was refused first; None if there are none.
        upto: the version of the quarantine in which they were counted; -1 if there was no quarantine.
        closing: the token of a batch that is about to change the number, which is not known until then; else empty.
    """

    rows: int = 0
    oldest: Instant | None = None
    upto: int = -1
    closing: str = ""


class WaitingChange(Protocol):
    """How a batch changes the waiting rows of its table."""

    @property
    def changes(self) -> bool:
        """Whether the batch may have changed the quarantine."""

    def begin(self, stored: WaitingRows | None) -> WaitingRows | None:
        """Return what is stored before the last event of the batch, so that nobody trusts the number if it dies."""

    def end(self, stored: WaitingRows | None) -> WaitingRows | None:
        """Return the waiting rows after the batch; None if they cannot be counted."""

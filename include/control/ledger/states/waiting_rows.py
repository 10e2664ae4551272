"""How many rows of a table wait in quarantine, and since when: a part of its state (ADR 25)."""

from __future__ import annotations

from include.contracts.interval import Instant
from include.control.ledger.states.table_state import StatePart


class WaitingRows(StatePart):
    """The rows of a table's quarantine that somebody still has to work on.

    Attributes:
        rows: their number.
        oldest: when the first of them was refused first; None if there are none.
    """

    rows: int = 0
    oldest: Instant | None = None

"""The status of a quarantined row, in the words of the CLI and of the form."""

from __future__ import annotations

from enum import StrEnum


class RowStatus(StrEnum):
    """The status of a quarantined row.

    An open row waits for a decision, and a fixed row waits for its replay. A replayed row is done. A discarded row is
    given up until somebody reopens it.
    """

    OPEN = "open"
    FIXED = "fixed"
    REPLAYED = "replayed"
    DISCARDED = "discarded"


PENDING = (RowStatus.OPEN, RowStatus.FIXED)
"""The statuses of rows that somebody still has to work on."""

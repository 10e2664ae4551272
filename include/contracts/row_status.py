"""Where a quarantined row stands, in the words of the CLI and of the form."""

from __future__ import annotations

from enum import StrEnum


class RowStatus(StrEnum):
    """Where a quarantined row stands.

    An open one waits for somebody; a fixed one for its replay; a replayed one is through, and a discarded one is given
    up until somebody reopens it.
    """

    OPEN = "open"
    FIXED = "fixed"
    REPLAYED = "replayed"
    DISCARDED = "discarded"


PENDING = (RowStatus.OPEN, RowStatus.FIXED)
"""Somebody has still to do something about the row."""

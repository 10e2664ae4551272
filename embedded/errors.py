"""The base of the local stack's errors."""

from __future__ import annotations


class StackError(Exception):
    """Raised when the local stack cannot start or stop; the message says what to do."""

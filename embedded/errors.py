"""The one error that the local stack raises on purpose."""

from __future__ import annotations


class StackError(Exception):
    """The base of everything that can keep the local stack from starting or stopping; its message says what to do."""

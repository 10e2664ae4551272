"""The condition of a table, in one word."""

from __future__ import annotations

from enum import StrEnum


class Condition(StrEnum):
    """The condition of a table, the worst first."""

    WRONG_SPEC = "wrong spec"
    REFUSED = "refused"
    FAILED = "run failed"
    APPROVAL = "waits for approval"
    STALE = "stale"
    UNCHECKED = "not checked"
    CERTIFIED_BY_HAND = "certified by hand"
    CERTIFIED = "certified"
    NEVER_RUN = "never run"


SEVERITY = list(Condition)
"""The conditions in their order."""

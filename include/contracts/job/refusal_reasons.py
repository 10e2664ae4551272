"""What the reasons of refused rows have in common."""

from __future__ import annotations

MISFIT = "value does not fit its type"
"""The rule of a value that could not be converted; the reason behind it ends with the value."""


def without_value(reason: str) -> str:
    """The part of a reason, `rule: reason`, that rows with other values share.

    >>> without_value("value does not fit its type: amount is no int: 12: or so")
    'value does not fit its type: amount is no int'
    >>> without_value("expect_between(amount): low: too low")
    'expect_between(amount): low: too low'
    """
    return ": ".join(reason.split(": ", 2)[:2]) if reason.startswith(f"{MISFIT}: ") else reason

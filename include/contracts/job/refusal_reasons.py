"""The form of the reasons of refused rows."""

from __future__ import annotations

INVALID_VALUE = "value does not fit its type"
"""The rule of a value that could not be converted to its type; its reason ends with the value."""


def without_value(reason: str) -> str:
    """Return a reason, `rule: reason`, without the value at its end.

    >>> without_value("value does not fit its type: amount is no int: 12: or so")
    'value does not fit its type: amount is no int'
    >>> without_value("expect_between(amount): low: too low")
    'expect_between(amount): low: too low'
    """
    return ": ".join(reason.split(": ", 2)[:2]) if reason.startswith(f"{INVALID_VALUE}: ") else reason

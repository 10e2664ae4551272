"""Bounds of a row rule, with the meaning that Great Expectations gives them."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime
from functools import reduce
from typing import Any, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

Bound: TypeAlias = float | date | datetime | None


def value_bound(given: object) -> Bound:
    """Return a bound of a value: a number as a double, a date or a moment; a moment without a zone is UTC.

    >>> value_bound(5), value_bound("5"), value_bound("2013-01-31"), value_bound(None)
    (5.0, 5.0, datetime.date(2013, 1, 31), None)
    >>> value_bound("2013-01-31T06:00:00").isoformat()
    '2013-01-31T06:00:00+00:00'

    Raises:
        ValueError: `given` is none of these.
    """
    value = _in_utc(_parse(given) if isinstance(given, str) else given)
    if value is None or isinstance(value, date):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError(f"a bound is a number, a date (2013-01-31) or a moment (2013-01-31T06:00:00), not {given!r}")


def length_bound(given: object) -> Bound:
    """Return a bound of a length in characters.

    Raises:
        ValueError: `given` is not a whole number.
    """
    bound = value_bound(given)
    if bound is None or (isinstance(bound, float) and bound.is_integer()):
        return bound
    raise ValueError(f"a length is a whole number of characters, not {given!r}")


def is_time(text: str) -> bool:
    """Whether a text is a date or a moment in ISO 8601, and not a number.

    >>> is_time("2013-01-31"), is_time("20130131"), is_time("soon")
    (True, False, False)
    """
    return isinstance(_parse(text), date)


def literal(value: object) -> Column:
    """Return a value of a rule as a column; a moment without a zone is UTC.

    Dates and moments become ISO 8601 text: PySpark cannot write years before 1000, which often mean "unknown", and
    reads a moment without a zone in the zone of the process.
    """
    value = _in_utc(value)
    if isinstance(value, date):
        return F.lit(value.isoformat()).cast("timestamp" if isinstance(value, datetime) else "date")
    return F.lit(value)


def is_outside(value: Column, low: Bound, high: Bound, strict_min: bool, strict_max: bool) -> Column:
    """Return true for a value outside its bounds, NULL for NULL.

    Raises:
        ValueError: there is no bound, or no value is between the bounds.
    """
    if low is None and high is None:
        raise ValueError("min_value and max_value are both missing: give at least one")
    if low is not None and high is not None:
        if type(low) is not type(high):
            raise ValueError(f"min_value {low} and max_value {high} are not of one kind")
        if low > high:  # type: ignore[operator]
            raise ValueError(f"min_value {low} is greater than max_value {high}")
    too_low = [] if low is None else [value <= literal(low) if strict_min else value < literal(low)]
    too_high = [] if high is None else [value >= literal(high) if strict_max else value > literal(high)]
    return reduce(operator.or_, [*too_low, *too_high])


def _in_utc(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def _parse(text: str) -> object:
    for parse in (float, date.fromisoformat, datetime.fromisoformat):
        try:
            return parse(text)
        except ValueError:
            continue
    return text

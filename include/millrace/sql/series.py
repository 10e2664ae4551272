"""How many elements a series has at most, as far as its text says it, such as `sequence(d, date_add(d, 6))`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from sqlglot import exp

MOST = 10_000
"""The largest size: more than a code is padded to, and than the days of 27 years. Spark holds thousands of rows at a
time, and so many such values still fit in the memory of a driver."""

_LENGTHS = frozenset(("array_size", "cardinality", "char_length", "character_length", "len", "length", "size"))
_CALENDAR = {
    **{"month": 12, "quarter": 4, "day": 31, "dayofmonth": 31, "dayofyear": 366, "weekofyear": 53, "dayofweek": 7},
    **{"weekday": 6, "hour": 23, "minute": 59, "second": 59},
}
"""Function -> the greatest value that it has."""

_SECONDS = {"MICROSECOND": 1e-6, "MILLISECOND": 1e-3, "SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}
_OF_SPANS = {**_SECONDS, "WEEK": 7 * 86400, "MONTH": 31 * 86400, "QUARTER": 92 * 86400, "YEAR": 366 * 86400}
_OF_STEPS = {**_SECONDS, "WEEK": 7 * 86400, "MONTH": 28 * 86400, "QUARTER": 90 * 86400, "YEAR": 365 * 86400}
"""Unit -> its seconds: in doubt, spans are long and steps are short."""

_TOO_LARGE = 1e10
"""More than any size that Spark takes."""
_MOST_DAYS = 4_000_000
"""More than the calendar has."""

_Span = float | timedelta
"""The distance of two numbers, or of two times."""


def length_of_series(arguments: list[exp.Expr]) -> int | None:
    """Return how many elements a series with these arguments has at most; None if nobody can say it.

    A series by days or longer steps, which counts as `MOST`, ends with the calendar: it fits in a driver's memory.
    """
    if len(arguments) < 2:
        return None
    start, stop, *steps = arguments
    step = steps[0] if steps else None
    if step is None and (first := number_of(start)) is not None:
        if is_length(stop):
            return 1  # an element for each one of a value
        if (greatest := greatest_of(stop)) is not None:
            return greatest + int(abs(first)) + 1
    each = _interval(step, _OF_STEPS) if step is not None else None
    all_days = [MOST] if each and abs(each) >= timedelta(days=1) else []
    goes_up = step is not None and not isinstance(step, exp.Neg)
    if name_of(stop) == "greatest" and len(stop.expressions) == 2 and start in stop.expressions:
        [stop, *_], goes_up = [each for each in stop.expressions if each != start] or [start], True
    ends = [stop]
    if name_of(stop) == "least":
        # Without a step that goes up it may go down without an end.
        ends = stop.expressions if goes_up else []
    lengths = [length for end in ends if (length := _steps_between(start, end, step)) is not None]
    return min((*lengths, *all_days), default=None)


def _steps_between(start: exp.Expr, end: exp.Expr, step: exp.Expr | None) -> int | None:
    if start == end:
        return 1
    span = _span(start, end)
    if isinstance(span, timedelta):
        each = timedelta(days=1) if step is None else _interval(step, _OF_STEPS)
        return int(abs(span) / abs(each)) + 1 if each else None
    number = 1.0 if step is None else number_of(step)
    return int(abs(span / number)) + 1 if span is not None and number else None


def _span(start: exp.Expr, end: exp.Expr) -> _Span | None:
    """Return how far an end is from the start, if the text says it."""
    if (first := _moment(start)) and (last := _moment(end)):
        return last - first
    if (low := number_of(start)) is not None and (high := number_of(end)) is not None:
        return high - low
    if start.this == end and isinstance(start, exp.TsOrDsAdd | exp.DateAdd | exp.DateSub | exp.Sub):
        start, end = end, start
    if end.this != start:
        return None
    number = number_of(added) if isinstance(added := end.args.get("expression"), exp.Expr) else None
    if isinstance(end, exp.TsOrDsAdd | exp.DateAdd | exp.DateSub) and number is not None:
        return timedelta(days=min(abs(number), _MOST_DAYS)) if end.text("unit").upper() == "DAY" else None
    if isinstance(end, exp.Add | exp.Sub):
        return number if number is not None else _interval(end.expression, _OF_SPANS)
    return None


def _interval(node: exp.Expr, units: dict[str, float]) -> timedelta | None:
    if not isinstance(node, exp.Interval):
        return None
    seconds = units.get(node.text("unit").upper().removesuffix("S"))
    number = re.fullmatch(r"-?\d{1,6}", node.text("this"))
    return timedelta(seconds=int(number[0]) * seconds) if number and seconds else None


def _moment(node: exp.Expr) -> datetime | None:
    is_time = isinstance(node, exp.TsOrDsToDate | exp.Date) or (
        isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.TEMPORAL_TYPES)
    )
    if not is_time or not isinstance(node.this, exp.Literal):
        return None
    try:
        return datetime.fromisoformat(node.this.name).replace(tzinfo=None)
    except ValueError:
        return None


def greatest_of(node: exp.Expr) -> int | None:
    """Return the greatest value that a part of a time has, such as its month; None for anything else."""
    return _CALENDAR.get(name_of(node) or str(node.key))


def number_of(node: exp.Expr) -> float | None:
    """Return the value of a number, or of a calculation with numbers; None for one that is no size of anything."""
    number = _value(node)
    return number if number is not None and abs(number) < _TOO_LARGE else None


def _value(node: exp.Expr) -> float | None:
    if isinstance(node, exp.Literal):
        return None if node.is_string else float(node.name)
    if isinstance(node, exp.Paren | exp.Cast):  # 10L is a cast, too
        return number_of(node.this)
    if isinstance(node, exp.Neg):
        return None if (number := number_of(node.this)) is None else -number
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        left, right = number_of(node.this), number_of(node.expression)
        if left is None or right is None:
            return None
        return left * right if isinstance(node, exp.Mul) else left + right * (1 if isinstance(node, exp.Add) else -1)
    return None


def is_length(node: exp.Expr) -> bool:
    """Whether a node is the length of a value, or a number less; or the greatest of lengths and small numbers."""
    if isinstance(node, exp.Sub) and (number_of(node.expression) or 0) > 0:
        return is_length(node.this)
    if name_of(node) in ("greatest", "least"):
        return all(is_length(each) or 0 <= (number_of(each) or MOST + 1) <= MOST for each in node.expressions)
    return name_of(node) in _LENGTHS


def name_of(node: exp.Expr) -> str:
    """Return the name of a function that is a function to sqlglot alone; empty for any other node."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""

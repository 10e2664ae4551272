"""How far back the rows of a value reach: by windows that are ordered by the value, and by joins of earlier values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from sqlglot import exp

from millrace.contracts.spec.duration import UNBOUNDED
from millrace.sql.expression import is_aggregate
from millrace.sql.query.names import UntraceableError, function_name, short

_FIXED = {
    "MICROSECOND": timedelta(microseconds=1), "MILLISECOND": timedelta(milliseconds=1), "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1), "HOUR": timedelta(hours=1), "DAY": timedelta(days=1), "WEEK": timedelta(weeks=1),
}  # fmt: skip
"""Units of time that always have the same length."""
_LONGEST = {"MONTH": timedelta(days=31), "QUARTER": timedelta(days=92), "YEAR": timedelta(days=366)}
_BY_EARLIER_ROWS = frozenset(("row_number", "rank", "dense_rank", "lag"))
"""Functions that look at earlier rows only, whatever the frame of their window."""
_BY_ALL_ROWS = frozenset(("lead", "ntile", "percent_rank", "cume_dist"))


def reach_of_window(window: exp.Window, is_value: Callable[[exp.Expr], bool], value: str) -> timedelta:
    """Return how far before a value the rows are that a window sees; `UNBOUNDED` if any earlier row may be one.

    Args:
        window: a window over rows of several values.
        is_value: whether a key of ORDER BY is the value.
        value: its name, for messages.

    Raises:
        UntraceableError: the window may see rows of later values.
    """
    order = window.args.get("order")
    first = order.expressions[0] if order else None
    if first is None or not is_value(first.this):
        raise UntraceableError(f"the window {short(window)} is neither partitioned nor ordered by {value}")
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        function = function.this
    name, frame = function_name(function), window.args.get("spec")
    if first.args.get("desc") or name in _BY_ALL_ROWS or _side(frame, "end") == "FOLLOWING":
        raise UntraceableError(f"the window {short(window)} sees later values of {value}")
    if name in _BY_EARLIER_ROWS:
        return UNBOUNDED
    if not is_aggregate(function):
        raise UntraceableError(f"the window {short(window)} is not traced")
    start, kind = (frame.args.get("start"), frame.args.get("kind")) if frame else ("UNBOUNDED", "RANGE")
    if start == "CURRENT ROW":
        return timedelta()
    if start == "UNBOUNDED" or str(kind).upper() == "ROWS":
        return UNBOUNDED
    span = _span(start, {**_FIXED, **_LONGEST})
    if span is None or span < timedelta():
        raise UntraceableError(f"the window {short(window)} does not say how far it reaches back: write an interval")
    return span


def reach_of_join(conditions: Iterable[exp.Expr], value: exp.Expr, other: exp.Expr) -> timedelta | None:
    """Return how far before a value another one is, at most, where all conditions are true.

    It returns None if the conditions do not exclude that it is later, or do not say how far.
    """
    bounds = [bound for condition in conditions for bound in _bounds(condition)]
    is_not_later = any((small, large) == (other, value) and by <= timedelta() for small, large, by in bounds)
    spans = [max(by, timedelta()) for small, large, by in bounds if (small, large) == (value, other)]
    return min(spans) if spans and is_not_later else None


def sum_of(*reaches: timedelta) -> timedelta:
    """Return how far rows reach back that reach back over several steps."""
    return UNBOUNDED if UNBOUNDED in reaches else sum(reaches, timedelta())


def in_words(reach: timedelta) -> str:
    """Return a reach as a spec states it.

    >>> in_words(timedelta(days=6)), in_words(timedelta(hours=30)), in_words(UNBOUNDED)
    ('6 days', '30 hours', 'unbounded')
    """
    if reach == UNBOUNDED:
        return "unbounded"
    hours = -(-reach // timedelta(hours=1))
    return f"{hours} hours" if hours % 24 else f"{hours // 24} days"


def _bounds(condition: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr, timedelta]]:
    """Yield (a, b, span) where the condition says that a <= b + span."""
    match condition:
        case exp.LT() | exp.LTE():
            pairs = [(condition.this, condition.expression)]
        case exp.GT() | exp.GTE():
            pairs = [(condition.expression, condition.this)]
        case exp.Between() if not condition.args.get("symmetric"):
            pairs = [(condition.args["low"], condition.this), (condition.this, condition.args["high"])]
        case _:
            pairs = []
    for small, large in pairs:
        (one, before), (other, after) = _shifted(small), _shifted(large)
        yield one, other, after - before


def _shifted(value: exp.Expr) -> tuple[exp.Expr, timedelta]:
    """Return (base, span) of a value that is its base plus a span, such as `date_sub(day, 6)`."""
    if isinstance(value, exp.Paren):
        return _shifted(value.this)
    unit = value.args.get("unit")
    if isinstance(value, exp.TsOrDsAdd | exp.TimestampAdd | exp.DateAdd) and (length := _FIXED.get(_unit(unit))):
        number = _number(value.expression)
        span = None if number is None else number * length
    elif isinstance(value, exp.Add | exp.Sub):
        span = _span(value.expression, _FIXED)
        span = -span if span is not None and isinstance(value, exp.Sub) else span
    else:
        span = None
    return (value, timedelta()) if span is None else (value.this, span)


def _span(value: object, units: dict[str, timedelta]) -> timedelta | None:
    """Return the length of an interval, or of a number of days; None for anything else."""
    length = timedelta(days=1)
    if isinstance(value, exp.Interval):
        if (unit := units.get(_unit(value.args.get("unit")))) is None:
            return None
        value, length = value.this, unit
    number = _number(value)
    return None if number is None else number * length


def _number(value: object) -> int | None:
    """Return a whole number of at most nine digits; None for anything else."""
    match value:
        case exp.Paren():
            return _number(value.this)
        case exp.Neg():
            number = _number(value.this)
            return None if number is None else -number
        case exp.Mul():
            one, other = _number(value.this), _number(value.expression)
            return None if one is None or other is None else one * other
        case exp.Literal() if value.name.isdecimal() and len(value.name) < 7:
            return int(value.name)
        case _:
            return None


def _unit(unit: object) -> str:
    name = unit.name.upper() if isinstance(unit, exp.Expr) else ""
    return name.removesuffix("S")


def _side(frame: exp.Expr | None, side: str) -> str:
    return str(frame.args.get(f"{side}_side") or "").upper() if frame else ""

"""The value of a term for one value of its column, as Spark computes it in a session whose time zone is UTC.

It knows the functions of dates and times, sums and comparisons, and no other: of those it knows no value.
"""

from __future__ import annotations

import operator
import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from sqlglot import exp

from millrace.sql.values.terms import unit_of

Value = datetime | Decimal | str | bool
"""A value of Spark SQL that is not null; a date is the time of its midnight."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,9})?", re.ASCII)

_KEPT = {"YEAR": 4, "MONTH": 7, "DAY": 10, "HOUR": 13, "MINUTE": 16, "SECOND": 19}
"""Unit -> how many characters of a time's text remain if it is cut off below the unit."""
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_PARTS: dict[type[exp.Expr], Callable[[datetime], int]] = {
    exp.Year: lambda time: time.year,
    exp.Quarter: lambda time: (time.month + 2) // 3,
    exp.Month: lambda time: time.month,
    exp.Day: lambda time: time.day,
    exp.DayOfMonth: lambda time: time.day,
    exp.DayOfWeek: lambda time: time.isoweekday() % 7 + 1,
    exp.DayOfYear: lambda time: time.timetuple().tm_yday,
    exp.WeekOfYear: lambda time: time.isocalendar().week,
    exp.Hour: lambda time: time.hour,
    exp.Minute: lambda time: time.minute,
    exp.Second: lambda time: time.second,
}
_COMPARISONS: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq, exp.NullSafeEQ: operator.eq, exp.NEQ: operator.ne,
    exp.LT: operator.lt, exp.LTE: operator.le, exp.GT: operator.gt, exp.GTE: operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expr], Callable[[Decimal, Decimal], Decimal]] = {
    exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul,
}  # fmt: skip


def value_of(term: exp.Expr, column: str, value: Value) -> Value:
    """Return the value of a term.

    Args:
        term: the term.
        column: the full name of its only column.
        value: the value of that column.

    Raises:
        ArithmeticError, LookupError, ValueError: the value of the term is not known.

    >>> from millrace.sql.values.terms import term_of
    >>> in_new_york = term_of("to_date(from_utc_timestamp(at, 'America/New_York'))", ".".join)
    >>> print(value_of(in_new_york, "at", datetime(2024, 5, 15, 1, 30)))
    2024-05-14 00:00:00
    """

    def of(key: str) -> Value:
        return value_of(term.args[key], column, value)

    def time() -> datetime:
        return _time(of("this"))

    def number(key: str) -> int:
        return int(str(_number(of(key))))

    match term:
        case exp.Column() if term.name == column:
            return value
        case exp.Literal():
            return term.name if term.is_string else _number(term.name)
        case exp.Neg():
            return -_number(of("this"))
        case exp.Not():
            return not of("this")
        case exp.And():
            return bool(of("this") and of("expression"))
        case exp.Or():
            return bool(of("this") or of("expression"))
        case exp.Is(expression=exp.Null()):
            return False
        case exp.Between():
            this = of("this")
            return _holds(operator.ge, this, of("low")) and _holds(operator.le, this, of("high"))
        case exp.In(expressions=[_, *_]):
            this = of("this")
            return any(_holds(operator.eq, this, value_of(each, column, value)) for each in term.expressions)
        case exp.LastDay() if not term.args.get("unit"):
            return _moved(_cut_off(time(), "MONTH"), 1, "MONTH") - timedelta(days=1)
        case exp.AddMonths():
            return _moved(_cut_off(time(), "DAY"), number("expression"), "MONTH")
        case exp.TsOrDsAdd():  # date_add and date_sub
            return _moved(_cut_off(time(), "DAY"), number("expression"), "DAY")
        case exp.TimestampAdd():
            return _moved(time(), number("expression"), term.text("unit"))
        case exp.AtTimeZone():
            return time().replace(tzinfo=UTC).astimezone(_zone(of("zone"))).replace(tzinfo=None)
        case exp.FromTimeZone():
            return time().replace(tzinfo=_zone(of("zone"))).astimezone(UTC).replace(tzinfo=None)
        case exp.Cast() if term.to.is_type(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ):
            return time()
        case exp.Add(this=exp.Interval() as step):
            return _moved(_time(of("expression")), int(step.name), step.text("unit"))
        case exp.Add(expression=exp.Interval() as step):
            return _moved(time(), int(step.name), step.text("unit"))
        case exp.Sub(expression=exp.Interval() as step):
            return _moved(time(), -int(step.name), step.text("unit"))
    if unit := unit_of(term):
        return _cut_off(time(), unit)
    kind = type(term)
    if kind in _PARTS:
        return Decimal(_PARTS[kind](time()))
    if kind in _COMPARISONS:
        return _holds(_COMPARISONS[kind], of("this"), of("expression"))
    combine, first, second = _ARITHMETIC[kind], of("this"), _number(of("expression"))
    if isinstance(first, datetime):
        return first + timedelta(days=int(combine(Decimal(), second)))
    return combine(_number(first), second)


def of_one_type(one: Value, other: Value) -> tuple[Any, Any]:
    """Return two values in the type in which Spark compares them.

    Raises:
        ValueError: they have none.
    """
    if type(one) is type(other):
        return one, other
    convert = _time if isinstance(one, datetime) or isinstance(other, datetime) else _number
    return convert(one), convert(other)


def _holds(comparison: Callable[[Any, Any], bool], one: Value, other: Value) -> bool:
    return comparison(*of_one_type(one, other))


def _time(value: Value) -> datetime:
    if isinstance(value, str) and _TIME.fullmatch(value):
        return datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value
    raise ValueError(f"{value} is no time")


def _number(value: Value) -> Decimal:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return Decimal(value)
    if isinstance(value, Decimal):
        return value
    raise ValueError(f"{value} is no number")


def _cut_off(time: datetime, unit: str) -> datetime:
    if unit == "WEEK":
        return _cut_off(time, "DAY") - timedelta(days=time.weekday())
    if unit == "QUARTER":
        return _moved(_cut_off(time, "MONTH"), -((time.month - 1) % 3), "MONTH")
    kept = _KEPT[unit]
    return datetime.fromisoformat(time.isoformat()[:kept] + "0001-01-01T00:00:00"[kept:])


def _moved(time: datetime, count: int, unit: str) -> datetime:
    """Return the time some units later; of a later month the last day at most."""
    name = unit.upper().removesuffix("S")
    if name not in _MONTHS:
        return time + timedelta(seconds=count * _SECONDS[name])
    year, month = divmod(time.year * 12 + time.month - 1 + count * _MONTHS[name], 12)
    return time.replace(year=year, month=month + 1, day=min(time.day, monthrange(year, month + 1)[1]))


def _zone(name: Value) -> ZoneInfo:
    """Return a zone of a region: its short names, such as EST, are other zones in Spark."""
    if "/" not in str(name):
        raise ValueError(f"{name} is no region")
    return ZoneInfo(str(name))

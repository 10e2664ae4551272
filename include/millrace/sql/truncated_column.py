"""Expressions whose values have the order of one column, so that its least and greatest values choose files.

They are compared as terms: as far as it can be known, expressions that always have the same value look the same. What
sqlglot cannot parse is no term: nothing is known of its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from millrace.sql.query_functions import WINDOWS_OF_TIME
from millrace.sql.spark_text import SPARK_TERMS

_LENGTH = re.compile(r"(\d{1,6}) (second|minute|hour|day|week)s?", re.IGNORECASE)


@dataclass(frozen=True)
class TruncatedColumn:
    """A column of a date or a timestamp of which an expression takes a part that never falls while the column grows.

    Attributes:
        column: the column's name, in lower case.
        unit: the unit below which the time is cut off.
        units: how many of it are one value, as the 6 hours of a window.
        is_year: whether the value is the number of the year, and not a time.
        is_shifted: whether the time is first moved to another time zone, so by less than a day.
        is_last_day: whether the value is the last day of the unit, and not its start.
    """

    column: str
    unit: str
    is_year: bool = False
    is_shifted: bool = False
    units: int = 1
    is_last_day: bool = False


def truncated_column(text: str) -> TruncatedColumn | None:
    """Return the column that an expression over the columns of one table truncates; None for any other expression.

    >>> truncated_column("to_date(opened_at)").unit
    'DAY'
    >>> truncated_column("year(to_date(opened_at))").unit
    'YEAR'
    >>> found = truncated_column("window(opened_at, '6 hours').start")
    >>> (found.column, found.units, found.unit)
    ('opened_at', 6, 'HOUR')
    """
    term = term_of(text, lambda parts: parts[0] if len(parts) == 1 else None)
    if term is None:
        return None
    if isinstance(term, exp.Bracket | exp.Dot):
        return _start_of_window(term)
    if isinstance(term, exp.LastDay) and isinstance(term.this, exp.Column) and not term.args.get("unit"):
        return TruncatedColumn(term.this.name, "MONTH", is_last_day=True)
    if isinstance(term, exp.Year):
        instant, is_year = Instant("YEAR", term.this), True
    else:
        instant, is_year = instant_of(term), False
    base, is_shifted = instant.base, isinstance(instant.base, exp.AtTimeZone | exp.FromTimeZone)
    if is_shifted:
        base = base.this.this if isinstance(base.this, exp.Cast) else base.this
    if not instant.unit or not isinstance(base, exp.Column):
        return None
    return TruncatedColumn(base.name, instant.unit, is_year, is_shifted)


def is_column(text: str) -> bool:
    """Whether an expression over the columns of one table is a column."""
    return isinstance(term_of(text, lambda parts: parts[0] if len(parts) == 1 else None), exp.Column)


def _start_of_window(term: exp.Expr) -> TruncatedColumn | None:
    """Return the column of a window that repeats after its own length, if a term is the start of one."""
    window, field = term.this, term.expressions[0] if isinstance(term, exp.Bracket) else term.expression
    if not (
        isinstance(window, exp.Anonymous) and window.name.lower() == WINDOWS_OF_TIME and field.name.lower() == "start"
    ):
        return None
    column, length, *others = (*window.expressions, exp.Null())
    found = _LENGTH.fullmatch(length.name) if isinstance(length, exp.Literal) else None
    if found is None or len(others) > 1 or not isinstance(column, exp.Column):
        return None
    return TruncatedColumn(column.name, found[2].upper(), units=int(found[1]))


_SYNONYMS = {"YYYY": "YEAR", "YY": "YEAR", "MON": "MONTH", "MM": "MONTH", "DD": "DAY"}
_NESTED = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "QUARTER", "YEAR")
"""Units of time; each is a whole number of those before it. A week is a whole number of days, and part of no other."""
_UP_TO_A_DAY = frozenset(_NESTED[: _NESTED.index("DAY") + 1])
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR", exp.Quarter: "QUARTER", exp.Month: "MONTH", exp.DayOfMonth: "DAY", exp.DayOfWeek: "DAY",
    exp.DayOfYear: "DAY", exp.WeekOfYear: "DAY", exp.Hour: "HOUR", exp.Minute: "MINUTE", exp.Second: "SECOND",
}  # fmt: skip
"""Functions that return a part of a time as a number, with the unit on which the number depends."""
Resolve = Callable[[tuple[str, ...]], str | None]
"""Returns the full name `<alias>.<column>` for the parts of a column's name; None if the column is not known."""


@dataclass(frozen=True)
class Instant:
    """A time that is cut off below a unit; `base` is the time before.

    Attributes:
        unit: `DAY`, `MONTH` and so on; empty for the time itself.
        base: the time.
    """

    unit: str
    base: exp.Expr


def term_of(text: str, resolve: Resolve) -> exp.Expr | None:
    """Return the term of a Spark SQL expression; None if it cannot be parsed, or has a column that is not known.

    >>> of_f = lambda parts: ".".join(("f", *parts))
    >>> term_of("to_date((day))", of_f) == term_of("DAY::date", of_f)
    True
    """
    try:
        tree = SPARK_TERMS.parse(text)[0]
    except (SqlglotError, IndexError):
        return None
    if tree is None or tree.find(exp.Query):
        return None
    unknown: list[tuple[str, ...]] = []

    def resolved(parts: tuple[str, ...]) -> str:
        name = resolve(parts)
        if name is None:
            unknown.append(parts)
        return (name or "").lower()

    term = _normalized(tree, resolved)
    return None if unknown else term


def instant_of(term: exp.Expr) -> Instant:
    """Return the time that a term truncates, and the unit.

    >>> instant = instant_of(term_of("cast(date_trunc('MM', to_date(at)) as date)", ".".join))
    >>> instant.unit, instant.base.name
    ('MONTH', 'at')
    """
    unit = unit_of(term)
    if not unit:
        return Instant("", term)
    inner = instant_of(term.this)
    if not inner.unit or _is_nested(inner.unit, unit):
        return Instant(unit, inner.base)
    return inner if _is_nested(unit, inner.unit) else Instant(unit, term.this)


def unit_of(node: exp.Expr) -> str:
    """Return the unit below which the node cuts off its time; empty if it does not."""
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DType.DATE):
        return "DAY"
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc) and (unit := node.args.get("unit")) is not None:
        name = unit.name.upper()
        name = _SYNONYMS.get(name, name)
        is_null = isinstance(node, exp.DateTrunc) and name in _UP_TO_A_DAY  # `trunc` knows no such unit
        return name if not is_null and (name == "WEEK" or name in _NESTED) else ""
    return ""


def _normalized(node: exp.Expr, resolve: Callable[[tuple[str, ...]], str]) -> exp.Expr:
    if isinstance(node, exp.Column):
        name = resolve(tuple(part.name for part in node.parts))
        return exp.column(exp.to_identifier(name, quoted=True))
    for child in list(node.iter_expressions()):
        child.replace(_normalized(child, resolve))
    node.comments = None
    if isinstance(node, exp.Anonymous):
        node.set("this", node.name.upper())
    return _simplified(node)


def _simplified(node: exp.Expr) -> exp.Expr:
    """Return one way to write what can be written in several; the parts of the node are simplified already."""
    if isinstance(node, exp.Paren):
        inner: exp.Expr = node.this
        return inner
    is_to_date = isinstance(node, exp.TsOrDsToDate) and not node.args.get("format")
    if is_to_date or (isinstance(node, exp.TryCast) and node.to.is_type(exp.DType.DATE)):  # so sqlglot reads `cast`
        return _simplified(exp.Cast(this=node.this.copy(), to=exp.DataType.build("date")))
    unit = unit_of(node) or _PARTS.get(type(node), "")
    while unit and (finer := unit_of(node.this)) and _is_nested(finer, unit):
        node.this.replace(node.this.this)
    return node


def _is_nested(small: str, large: str) -> bool:
    """Return whether cutting off below the small unit first changes nothing."""
    if "WEEK" in (small, large):
        return small == large or (large == "WEEK" and small in _UP_TO_A_DAY)
    return _NESTED.index(small) <= _NESTED.index(large)

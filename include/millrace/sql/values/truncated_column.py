"""Expressions whose values have the order of one column, so that its least and greatest values choose files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from millrace.sql.query_functions import WINDOWS_OF_TIME
from millrace.sql.values.terms import Instant, instant_of, term_of

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

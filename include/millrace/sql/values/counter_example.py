"""A value of a column for which two terms have different values: it proves that they are not the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import product

from sqlglot import exp

from millrace.sql.values.row_value import Value, of_one_type, value_of
from millrace.sql.values.terms import columns_of

_DAYS = ("2024-05-15", "2024-02-29", "2023-12-31", "2026-11-01", "1999-01-04", "2012-07-31", "2033-08-20", "2060-01-01")
_HOURS = ("12:00:00", "00:00:00", "01:30:15", "23:59:59")
_TIMES = tuple(datetime.fromisoformat(f"{day} {hour}") for day, hour in product(_DAYS, _HOURS))
_NUMBERS = tuple(map(Decimal, (2, 1, 0, 5, 100)))
SAMPLES: Mapping[str, tuple[Value, ...]] = {
    "date": tuple(map(datetime.fromisoformat, _DAYS)),
    "timestamp": _TIMES,
    "timestamp_ntz": _TIMES,
    "string": ("a", "B", *_DAYS),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double"), _NUMBERS),
    "decimal": _NUMBERS[1:3],
}
"""Spark's type -> some values of a column of it. The days include ends of months and years, and both times of zones."""


@dataclass(frozen=True)
class CounterExample:
    """A value for which two terms differ.

    Attributes:
        column: the full name of the column.
        value: its value.
        given, wanted: the values of the two terms.
    """

    column: str
    value: Value
    given: Value
    wanted: Value

    def __str__(self) -> str:
        """Return it in words, such as `for day = 2024-05-15 these are 2024-05-15 and 2024-05-16`."""
        value, wanted, given = (str(each).removesuffix(" 00:00:00") for each in (self.value, self.wanted, self.given))
        return f"for {self.column.partition('.')[2]} = {value} these are {wanted} and {given}"


def counter_example(
    given: exp.Expr,
    wanted: exp.Expr,
    types: Mapping[str, str],
    conditions: Iterable[exp.Expr] = (),
    lookback: timedelta = timedelta(),
) -> CounterExample | None:
    """Return a value for which two terms over the same single column differ; None if none is known.

    Args:
        given: a term.
        wanted: the term with which it is compared.
        types: full name of a column -> its type; one without a type needs an example of each type that it may have.
        conditions: terms that are true for the values that count; those without the column are ignored.
        lookback: how much earlier the given value may be than the wanted one, and still count as the same.
    """
    columns = columns_of(given) | columns_of(wanted)
    if len(columns) != 1:
        return None
    (column,) = columns
    needed = [condition for condition in conditions if column in columns_of(condition)]
    found: CounterExample | None = None
    for kind in [types[column].partition("(")[0]] if column in types else SAMPLES:
        is_computed = False
        for sample in SAMPLES.get(kind, ()):
            try:
                if not all(value_of(condition, column, sample) for condition in needed):
                    continue
                values = value_of(given, column, sample), value_of(wanted, column, sample)
            except (ArithmeticError, LookupError, RecursionError, ValueError):
                continue
            is_computed = True
            if not _is_same(*values, lookback):
                found = CounterExample(column, sample, *values)
                break
        else:
            if is_computed:
                return None
    return found


def _is_same(given: Value, wanted: Value, lookback: timedelta) -> bool:
    try:
        first, second = of_one_type(given, wanted)
    except ValueError:  # of a truth value Spark also reads other texts
        return isinstance(given, bool) or isinstance(wanted, bool)
    if lookback and first < second:
        return not isinstance(first, datetime) or second - first <= lookback
    return bool(first == second)

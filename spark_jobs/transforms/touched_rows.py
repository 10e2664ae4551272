"""Find the rows of a source that belong to touched values, by conditions that Delta can check by a file's statistics.

Delta keeps the least and the greatest value of a column in each file. It cannot evaluate `to_date(opened_at) IN (...)`
with these, but `opened_at >= ... AND opened_at < ...`. So a range of the column is added to the condition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, TimestampType

from spark_jobs.transforms.touched_spans import TouchedSpans

MAX_RANGES = 50
"""If more values are touched, one range from the least to the greatest is added."""

_PLAIN_COLUMN = re.compile(r"\s*`?\w+`?\s*", re.ASCII)
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAY_S = 24 * 3_600
_SECONDS = {"DAY": _DAY_S, "WEEK": 7 * _DAY_S, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}


Touched = Sequence[str | None] | TouchedSpans
"""Values of `refresh_by`, as text; or spans of them."""


def gives_touched(expression: str, rows: DataFrame, touched: Touched) -> Column:
    """Return a condition on rows: the expression has one of the touched values, or one on which these depend."""
    if isinstance(touched, TouchedSpans):
        condition = F.expr(touched.is_read(f"({expression})"))
    else:
        condition = has_value(F.expr(expression), touched)
    in_range = range_of(expression, rows, touched)
    return condition if in_range is None else condition & in_range


def is_touched(column: str, touched: Touched) -> Column:
    """Return true where a column has a touched value; null is a value like any other."""
    if isinstance(touched, TouchedSpans):
        return F.expr(touched.is_computed(f"`{column}`"))
    return has_value(F.col(column), touched)


def has_value(value: Column, touched: Sequence[str | None]) -> Column:
    """Return true where `value`, as text, is one of `touched`; null is a value like any other."""
    texts = [text for text in touched if text is not None]
    matches = [*([value.isin(texts)] if texts else []), *([value.isNull()] if None in touched else [])]
    return reduce(lambda a, b: a | b, matches) if matches else F.lit(False)


def range_of(expression: str, rows: DataFrame, touched: Touched) -> Column | None:
    """Return a condition on one column that is true in each row whose expression gives a touched value.

    It returns None if no such condition is known: the expression must cut off a date or a timestamp below a unit, or
    be its year.
    """
    if _PLAIN_COLUMN.fullmatch(expression) or (isinstance(touched, TouchedSpans) and touched.read is None):
        return None
    # sqlglot takes half a second to load, which a plain column does not need.
    from include.sql.terms import truncated_column

    found = truncated_column(expression)
    types = {field.name.lower(): field for field in rows.schema.fields}
    if found is None or (field := types.get(found.column)) is None:
        return None
    column, kind = F.col(f"`{field.name}`"), field.dataType
    if not isinstance(kind, DateType | TimestampType) or found.unit not in _MONTHS | _SECONDS:
        return None
    ranges, has_null = _ranges(touched, kind, is_year=found.is_year)
    ends = [(first, _after(last, found.unit, kind)) for first, last in ranges]
    if found.is_shifted:
        ends = [(_move(first, -1, kind), _move(end, 1, kind)) for first, end in ends]
    parts = [(column >= first) & (column < end) for first, end in ends]
    parts += [column.isNull()] if has_null else []
    return reduce(lambda a, b: a | b, parts) if parts else F.lit(False)


def _ranges(touched: Touched, kind: DataType, *, is_year: bool) -> tuple[list[tuple[Column, Column]], bool]:
    """Return the first and the last start of each range of values, and whether null is a value."""
    if isinstance(touched, TouchedSpans):
        ends = [(F.expr(first).cast(kind), F.expr(last).cast(kind)) for first, last in touched.read or ()]
        return ends, touched.has_null
    starts = [_start(text, kind, is_year=is_year) for text in touched if text is not None]
    if len(starts) > MAX_RANGES:
        return [(F.array_min(F.array(*starts)), F.array_max(F.array(*starts)))], None in touched
    return [(start, start) for start in starts], None in touched


def _start(text: str, kind: DataType, *, is_year: bool) -> Column:
    if is_year:
        return F.make_date(F.lit(int(text)), F.lit(1), F.lit(1)).cast(kind)
    return F.lit(text).cast(TimestampType()).cast(kind)


def _after(start: Column, unit: str, kind: DataType) -> Column:
    """Return the first instant after the unit that begins at `start`."""
    if months := _MONTHS.get(unit):
        return F.add_months(start, months).cast(kind)
    if isinstance(kind, DateType) or _SECONDS[unit] >= _DAY_S:
        return _move(start, max(_SECONDS[unit] // _DAY_S, 1), kind)
    return F.timestamp_seconds(F.unix_seconds(start) + F.lit(_SECONDS[unit]))


def _move(instant: Column, days: int, kind: DataType) -> Column:
    """Return the instant some days of 24 hours later; sessions are in UTC."""
    if isinstance(kind, DateType):
        return F.date_add(instant, days)
    return F.timestamp_seconds(F.unix_seconds(instant) + F.lit(days * _DAY_S))

"""Find the rows of a table that belong to touched values, by conditions that Delta can check by a file's statistics.

Delta keeps the least and the greatest value of a column in each file. It cannot evaluate `to_date(opened_at) IN (...)`
with these, and of `day IN (...)` it looks only at the least and the greatest value of the list. So ranges of the column
are added to the condition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, TimestampType

from millrace.contracts.spec.column_types import TIMES_READ, TYPES, WHOLE_NUMBERS
from millrace_spark.transforms.sql_texts import sql_text
from millrace_spark.transforms.touched_spans import TouchedSpans

MAX_RANGES = 50
"""If more values are touched, those that are next to each other share a range."""

_GAP = 0.01
"""Values share a range, too, if the gap between them is a smaller part of the span of all: Spark evaluates each range
for each row."""

_PLAIN_COLUMN = re.compile(r"\s*(?:(\w+)|`([^`]+)`)\s*", re.ASCII)
_INTEGER, _TIME = re.compile(r"-?\d+"), re.compile(r"\d{4}-\d\d-\d\d[\d:. ]*")
_COMMON_YEAR = re.compile(r"\d{4}-")
"""The texts of times with such a year have the order of the times."""

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
        types = {field.name.lower(): field.dataType.simpleString() for field in rows.schema.fields}
        condition = F.expr(value_text(expression, types, touched))
    in_range = range_of(expression, rows, touched)
    return condition if in_range is None else condition & in_range


def is_touched(value: str, touched: Touched) -> Column:
    """Return true where a value, as Spark SQL, is a touched one; null is a value like any other."""
    return F.expr(touched_text(value, {}, touched))


def touched_text(value: str, types: Mapping[str, str], touched: Touched) -> str:
    """Return the condition of `is_touched` as SQL, with ranges of the values if the value is a column with a type."""
    return touched.is_computed(value) if isinstance(touched, TouchedSpans) else value_text(value, types, touched)


def value_text(expression: str, types: Mapping[str, str], touched: Sequence[str | None]) -> str:
    """Return SQL that is true where the value of an expression, as text, is one of `touched`.

    With it are ranges of the values, if the expression is a column. The values have its type: Delta checks each written
    row against the condition, and converts a text anew for each row.

    Args:
        expression: Spark SQL over the columns of a table.
        types: column, in lower case -> its Spark SQL type; a column without a type gets no ranges.
        touched: values of the expression, as text.

    >>> value_text("day", {"day": "date"}, ["2013-01-04", None])
    "(`day` IN (DATE'2013-01-04') AND (`day` = DATE'2013-01-04')) OR `day` IS NULL"
    """
    plain = _PLAIN_COLUMN.fullmatch(expression)
    column = plain and (plain[1] or plain[2])
    value = f"`{column}`" if column else f"({expression}\n)"
    texts = [text for text in touched if text is not None]
    parts = [f"{value} IS NULL"] if None in touched else []
    if texts:
        kind = types.get((column or "").lower(), "")
        within = " OR ".join(_within(value, *ends, kind) for ends in _ranges(texts, kind))
        matches = f"{value} IN ({', '.join(_literal(text, kind) for text in texts)})"
        parts = [f"({matches} AND ({within}))" if within else matches, *parts]
    return " OR ".join(parts) or "false"


def _literal(text: str, kind: str) -> str:
    """Return a value as a literal of its type; as a text, if the type is not known or the text is an unusual one.

    >>> _literal("-7", "bigint"), _literal("+10000-01-01", "date"), _literal("7", "")
    ('-7L', "'+10000-01-01'", "'7'")
    >>> _literal("70000", "smallint")  # of a joined column of a wider type
    '70000'
    """
    if kind in WHOLE_NUMBERS and _INTEGER.fullmatch(text):
        of_type = TYPES[kind]
        return text + (of_type.literal if abs(int(text)) < 2 ** (of_type.bits - 1) else "")
    return f"{TYPES[kind].literal}{sql_text(text)}" if kind in TIMES_READ and _TIME.fullmatch(text) else sql_text(text)


def _within(value: str, first: str, last: str, kind: str) -> str:
    least, greatest = _literal(first, kind), _literal(last, kind)
    return f"{value} = {least}" if first == last else f"{value} >= {least} AND {value} <= {greatest}"


def range_of(expression: str, rows: DataFrame, touched: Touched) -> Column | None:
    """Return a condition on one column that is true in each row whose expression gives a touched value.

    It returns None if no such condition is known: the expression must cut off a date or a timestamp below a unit, or
    be its year, the last day of its month, or the start of its window.
    """
    if _PLAIN_COLUMN.fullmatch(expression) or (isinstance(touched, TouchedSpans) and touched.read is None):
        return None
    # sqlglot takes half a second to load, which a plain column does not need.
    from millrace.sql.truncated_column import truncated_column

    found = truncated_column(expression)
    types = {field.name.lower(): field for field in rows.schema.fields}
    if found is None or (field := types.get(found.column)) is None:
        return None
    column, kind = F.col(f"`{field.name}`"), field.dataType
    if not isinstance(kind, DateType | TimestampType) or found.unit not in _MONTHS | _SECONDS:
        return None
    starts, has_null = _starts(touched, kind, is_year=found.is_year)
    if starts is None:
        return None
    if found.is_last_day:
        starts = [(_month_of(first, kind), _month_of(last, kind)) for first, last in starts]
    ends = [(first, _after(last, found.unit, found.units, kind)) for first, last in starts]
    if found.is_shifted:
        ends = [(_move(first, -1, kind), _move(end, 1, kind)) for first, end in ends]
    parts = [(column >= first) & (column < end) for first, end in ends]
    parts += [column.isNull()] if has_null else []
    return _any_of(parts) if parts else F.lit(False)


def _any_of(conditions: Sequence[Column]) -> Column:
    """Return their OR as a tree of little depth: Spark Connect refuses a chain of some thirty conditions."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return _any_of(conditions[:half]) | _any_of(conditions[half:])


def _starts(touched: Touched, kind: DataType, *, is_year: bool) -> tuple[list[tuple[Column, Column]] | None, bool]:
    """Return the first and the last start of each range of values, None if it is not known; and whether null is one."""
    if isinstance(touched, TouchedSpans):
        ends = [(F.expr(first), F.expr(last)) for first, last in touched.read or ()]
        if is_year:
            ends = [(_new_year(first.cast("int")), _new_year(last.cast("int"))) for first, last in ends]
        return [(first.cast(kind), last.cast(kind)) for first, last in ends], touched.has_null
    texts = [text for text in touched if text is not None]
    ranges = _ranges(texts, "int" if is_year else "timestamp")
    if texts and not ranges:
        return None, None in touched
    return [
        (_start(first, kind, is_year=is_year), _start(last, kind, is_year=is_year)) for first, last in ranges
    ], None in touched


def _ranges(texts: Sequence[str], kind: str) -> list[tuple[str, str]]:
    """Return at most `MAX_RANGES` (least, greatest) values between which all values are.

    It returns none if the order of the values is not known. The ranges end at the widest gaps between values.

    >>> _ranges([*map(str, range(200)), "9000", "9001"], "int")
    [('0', '199'), ('9000', '9001')]
    """
    places: dict[str, int]
    if not texts:
        return []
    if kind in WHOLE_NUMBERS:
        places = {text: int(text) for text in texts}
    elif kind in TIMES_READ and all(map(_COMMON_YEAR.match, texts)):
        # For the widths of gaps a number of the day is enough; the texts have the order of the times.
        places = {text: 372 * int(text[:4]) + 31 * int(text[5:7]) + int(text[8:10]) for text in texts}
    elif kind == "string":
        places = {text: place for place, text in enumerate(sorted(texts))}
    else:
        return []
    ordered = sorted(places, key=lambda text: (places[text], text))
    width = {at: places[ordered[at]] - places[ordered[at - 1]] for at in range(1, len(ordered))}
    gaps = [at for at in width if width[at] >= _GAP * (places[ordered[-1]] - places[ordered[0]])]
    widest = sorted(gaps, key=width.__getitem__, reverse=True)
    cuts = [0, *sorted(widest[: MAX_RANGES - 1]), len(ordered)]
    return [(ordered[first], ordered[end - 1]) for first, end in pairwise(cuts)]


def _start(text: str, kind: DataType, *, is_year: bool) -> Column:
    if is_year:
        return _new_year(F.lit(int(text))).cast(kind)
    return F.lit(text).cast(TimestampType()).cast(kind)


def _new_year(year: Column) -> Column:
    return F.make_date(year, F.lit(1), F.lit(1))


def _month_of(day: Column, kind: DataType) -> Column:
    return F.trunc(day, "MM").cast(kind)


def _after(start: Column, unit: str, units: int, kind: DataType) -> Column:
    """Return the first instant after the units of time that begin at `start`, or a later one."""
    if months := _MONTHS.get(unit):
        return F.add_months(start, months * units).cast(kind)
    seconds = _SECONDS[unit] * units
    if isinstance(kind, DateType):  # several units may begin within a day
        return _move(start, -(-seconds // _DAY_S) + (units > 1), kind)
    return F.timestamp_seconds(F.unix_seconds(start) + F.lit(seconds))


def _move(instant: Column, days: int, kind: DataType) -> Column:
    """Return the instant some days of 24 hours later; sessions are in UTC."""
    if isinstance(kind, DateType):
        return F.date_add(instant, days)
    return F.timestamp_seconds(F.unix_seconds(instant) + F.lit(days * _DAY_S))

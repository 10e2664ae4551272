"""Gold: ranges that contain all touched values, if these are too many for a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from millrace.contracts.spec.column_types import TIMES_READ, WHOLE_NUMBERS
from millrace_spark.transforms.touched_spans import MAX_SPANS, Ranges

MOST_WITHOUT_RANGES = 1_000
"""More values are computed by ranges, if they have any: to collect and to list them costs more than most refreshes."""

_NEAR = 0.01
"""Two ranges are one if the gap between them is a smaller part of the whole."""

_PARTS = MAX_SPANS - 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def have_ranges(kind: str, kinds: Iterable[str]) -> bool:
    """Whether values of these types have ranges of another type: all are whole numbers, or the same type of times."""
    types = {kind, *kinds}
    return types <= {*WHOLE_NUMBERS} or (len(types) == 1 and kind in TIMES_READ)


def ranges_of(values: DataFrame, kind: str, sample: Sequence[str | None]) -> Ranges | None:
    """Return at most `MAX_SPANS` ranges that contain all values, by one aggregation; None if one has no known place.

    From the least to the greatest value of the sample there are parts of the same width, and one more on each side.
    Each has one range at most, from the least to the greatest of its values; near neighbours are one. So no value is
    left out, whatever the sample; if it is a fair one, the ranges are narrow.

    Args:
        values: the values, as the text column `touched`, in any number and order.
        kind: their type: whole numbers, dates or times.
        sample: some of them.
    """
    try:
        places = [_place_of(text, kind) for text in sample if text is not None]
    except ValueError:  # years that Spark has, and Python has not
        return None
    least, greatest = min(places, default=0), max(places, default=0)
    text = F.col("touched")
    value = text.try_cast(kind)
    place = _place(value, kind)
    part = (place.cast("double") - F.lit(float(least))) * F.lit(_PARTS / max(greatest - least, 1))
    parts = values.groupBy(F.floor(F.least(F.greatest(part, F.lit(-1.0)), F.lit(float(_PARTS)))).alias("part")).agg(
        F.min(value).cast("string").alias("first"),
        F.max(value).cast("string").alias("last"),
        F.min(place).alias("least"),
        F.max(place).alias("greatest"),
        F.bool_or(text.isNull()).alias("has_null"),
        F.bool_or(text.isNotNull() & value.isNull()).alias("is_odd"),
    )
    rows = parts.collect()
    if any(row["is_odd"] for row in rows):
        return None
    return Ranges(_joined([row for row in rows if row["first"] is not None]), any(row["has_null"] for row in rows))


def _joined(parts: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the ranges of the parts in order, near neighbours as one."""
    ordered = sorted(parts, key=lambda row: int(row["least"]))
    near = max(_NEAR * (ordered[-1]["greatest"] - ordered[0]["least"]), 1) if ordered else 0
    ranges: list[tuple[str, str]] = []
    for at, row in enumerate(ordered):
        if at and row["least"] - ordered[at - 1]["greatest"] <= near:
            ranges[-1] = (ranges[-1][0], row["last"])
        else:
            ranges.append((row["first"], row["last"]))
    return ranges


def _place_of(text: str, kind: str) -> int:
    """Return what `_place` gives for the value with this text.

    >>> _place_of("-7", "bigint"), _place_of("1970-01-03", "date"), _place_of("1970-01-01 00:00:00.5", "timestamp")
    (-7, 2, 500000)

    Raises:
        ValueError: Python has no such date.
    """
    if kind in WHOLE_NUMBERS:
        return int(text)
    unit = timedelta(days=1) if kind == "date" else timedelta(microseconds=1)
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // unit


def _place(value: Column, kind: str) -> Column:
    """Return where a value is among all of its type: the number, or the days or microseconds since 1970."""
    if kind in WHOLE_NUMBERS:
        return value.cast("bigint")
    return F.unix_date(value) if kind == "date" else F.unix_micros(value.cast("timestamp"))

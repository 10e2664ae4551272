"""Adjust the figures of a group by the combinations of values whose number of rows changed.

Only the rows of these combinations are counted in the version that is checked. Delta skips files without them by the
least and the greatest values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, DecimalType, IntegralType, StringType, TimestampType

from millrace_spark.quality.fused.groups import OF_GROUPS, Group, group_figure, has_a_value

MOST_VALUES = 20_000
"""Up to this number of changed combinations they are looked up; beyond it all rows are counted."""

CHANGE = "_change"
"""The column with the number of rows that a combination gained; less than 0 if it lost rows."""

_NOW, _HASH = "_now", "_hash"

_WORD = 64
"""The bits of a word of a bitmap."""

_BITS_PER_HASH = 64
"""The least number of bits in a bitmap for each hash."""

_WITH_BOUNDS = (IntegralType, DecimalType, StringType, DateType, TimestampType)
"""The types whose values are the same after a cast to text and back."""


@dataclass(frozen=True)
class ChangedValues:
    """The combinations of values of a group whose number of rows changed.

    Attributes:
        hashes: the hash of each combination; other combinations may have the same.
        bounds: column -> the least and the greatest of their values as text, where none of them is NULL.
    """

    hashes: Sequence[int]
    bounds: Mapping[str, tuple[str, str]]


def changed_values_frame(feed: DataFrame, columns: Group, number: int, *, lost_only: bool = False) -> DataFrame:
    """Return one row that `changed_values` reads: of the combinations whose number of rows changed in the feed.

    Args:
        feed: the change feed.
        columns: the group.
        number: the number of the group, which is in the names of the columns.
        lost_only: only combinations that lost rows.
    """
    changed = value_changes(feed, columns, lost_only=lost_only).withColumn(_HASH, F.xxhash64(*columns))
    # A limit without an order has a number of its own in the generated code, which Spark then compiles anew each time.
    changed = changed.orderBy(_HASH).limit(MOST_VALUES + 1)
    bounds = [
        aggregate(F.col(column)).cast("string").alias(f"{name}_{number}_{place}")
        for place, column in enumerate(columns)
        if isinstance(feed.schema[column].dataType, _WITH_BOUNDS)
        for name, aggregate in (("least", F.min), ("greatest", F.max))
    ]
    unset = [
        F.count_if(F.col(column).isNull()).alias(f"unset_{number}_{place}") for place, column in enumerate(columns)
    ]
    return changed.agg(F.collect_list(_HASH).alias(f"hashes_{number}"), *bounds, *unset)


def changed_values(values: Mapping[str, Any], columns: Group, number: int) -> ChangedValues | None:
    """Return the changed combinations of a group by the values of its frame, if there is one; None for too many."""
    hashes = values.get(f"hashes_{number}", ())
    if len(hashes) > MOST_VALUES:
        return None
    bounds = {
        column: (values[f"least_{number}_{place}"], values[f"greatest_{number}_{place}"])
        for place, column in enumerate(columns)
        if f"least_{number}_{place}" in values and not values[f"unset_{number}_{place}"]
    }
    return ChangedValues(hashes, bounds)


def differences(df: DataFrame, feed: DataFrame, columns: Group, changed: ChangedValues, number: int) -> DataFrame:
    """Return by how much the group's figures differ from those before the feed: `values`, `rows`, `repeated`.

    It also has `impossible`, the number of combinations that would have had fewer than no rows before.

    Args:
        df: the version that is checked.
        feed: the change feed that leads to it.
        columns: the group.
        changed: the combinations whose number of rows changed.
        number: the number of the group, which is in the names of the columns.
    """
    distinct = _distinct(columns)
    # A union, because a join would broadcast one side in its own job; and GROUP BY treats NULL and NaN as values.
    now = df.where(is_among(df, columns, changed)).select(*distinct, F.lit(None).cast("long").alias(CHANGE))
    changes = value_changes(feed, columns).select(*distinct, CHANGE)
    counts = changes.unionAll(now).groupBy(*distinct)
    both = counts.agg(F.sum(CHANGE).alias(CHANGE), F.count_if(F.col(CHANGE).isNull()).alias(_NOW))
    after = F.col(_NOW)
    before = after - F.col(CHANGE)
    aggregates = {
        "values": F.sum((after > 0).cast("long") - (before > 0).cast("long")),
        "rows": F.sum(CHANGE),
        "repeated": F.sum(F.when(after > 1, after).otherwise(0) - F.when(before > 1, before).otherwise(0)),
        "impossible": F.count_if(before < 0),
    }
    named = [F.coalesce(figure, F.lit(0)).alias(f"{name}_more_{number}") for name, figure in aggregates.items()]
    return both.where(F.col(CHANGE).isNotNull()).agg(*named)


def add_differences(
    before: Mapping[str, Any], values: Mapping[str, Any], columns: Group, number: int
) -> dict[str, int]:
    """Return the group's figures after its differences; empty if these cannot be right.

    Args:
        before: the figures of the earlier version.
        values: the values of the frame `differences`; none if no combination changed.
        columns: the group.
        number: the number of the group.
    """
    if values.get(f"impossible_more_{number}"):
        return {}
    names = {figure: group_figure(columns, figure) for figure in OF_GROUPS}
    return {name: before[name] + values.get(f"{figure}_more_{number}", 0) for figure, name in names.items()}


def value_changes(feed: DataFrame, columns: Group, *, lost_only: bool = False) -> DataFrame:
    """Return the combinations with a value whose number of rows changed, or fell, and by how much (`_change`)."""
    sign = F.when(F.col("_change_type").isin("insert", "update_postimage"), 1).otherwise(-1)
    sums = feed.where(has_a_value(columns)).groupBy(*_distinct(columns)).agg(F.sum(sign).alias(CHANGE))
    return sums.where(F.col(CHANGE) < 0 if lost_only else F.col(CHANGE) != 0)


def is_among(df: DataFrame, columns: Group, changed: ChangedValues) -> Column:
    """Return true for a row of `df` with one of the changed combinations, and for few other rows."""
    bounds = [
        F.col(column).between(*(F.lit(bound).cast(df.schema[column].dataType) for bound in least_and_greatest))
        for column, least_and_greatest in changed.bounds.items()
    ]
    return reduce(and_, [*bounds, has_a_value(columns), has_bit_of(F.xxhash64(*columns), changed.hashes)])


def has_bit_of(value: Column, hashes: Sequence[int]) -> Column:
    """Return true for a value that is one of the hashes, and for at most one in `_BITS_PER_HASH` other values.

    The last bits of a hash choose its bit in a bitmap, which is a single literal: Spark takes longer to plan a list of
    thousands of literals than to run the query.
    """
    size = 1 << (len(hashes) * _BITS_PER_HASH).bit_length()
    words = [0] * (size // _WORD)
    for hashed in hashes:
        words[(hashed % size) // _WORD] |= 1 << (hashed % _WORD)
    signed = (word - (1 << _WORD) if word >> (_WORD - 1) else word for word in words)
    bitmap = F.split(F.lit(",".join(map(str, signed))), ",").cast("array<bigint>")
    place = F.pmod(value, F.lit(size)).cast("int")
    return F.bit_get(F.get(bitmap, F.shiftright(place, _WORD.bit_length() - 1)), F.pmod(place, F.lit(_WORD))) == 1


def _distinct(columns: Group) -> list[str]:
    return list(dict.fromkeys(columns))

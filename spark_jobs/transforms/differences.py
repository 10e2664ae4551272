"""Compare the stored groups of a gold table with computed ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructField, StructType

from include.contracts.spec.duration import UNBOUNDED
from include.contracts.spec.table_spec import GoldSpec

TOLERANCES: dict[type[DataType], float] = {DoubleType: 1e-9, FloatType: 1e-6}
"""Type -> by which part of its size a value may differ, since a sum of such numbers depends on their order."""


def compare_groups(stored: DataFrame, computed: DataFrame, groups: Sequence[str], measures: Sequence[str]) -> DataFrame:
    """Return one row per group of either side, by group columns in which null is a value.

    Args:
        stored: the rows of the table.
        computed: the rows that it should have.
        groups: the columns that identify a row.
        measures: the columns to compare.

    Returns:
        The group columns; `_stored` and `_computed`, the measures of either side, null if it has no such group;
        `_differing`, the names of the measures that differ; `_is_different`, which is also true for a group that one
        side lacks, or has twice.
    """
    types = {field.name: field.dataType for field in stored.schema.fields}
    typed = computed.select(*(F.col(name).cast(types[name]).alias(name) for name in (*groups, *measures)))
    sides = [
        rows.select(
            *groups,
            F.struct(F.lit(True).alias("_exists"), *measures).alias("_values"),
            F.lit(is_stored).alias("_is_stored"),
        )
        for rows, is_stored in ((stored, True), (typed, False))
    ]
    is_stored = F.col("_is_stored")
    both = reduce(DataFrame.unionByName, sides).groupBy(*groups)
    grouped = both.agg(
        F.first(F.when(is_stored, F.col("_values")), ignorenulls=True).alias("_stored"),
        F.first(F.when(~is_stored, F.col("_values")), ignorenulls=True).alias("_computed"),
        (F.count_if(is_stored) != F.count_if(~is_stored)).alias("_has_other_rows"),
    )
    differing = [
        F.when(~is_close(F.col(f"_stored.{name}"), F.col(f"_computed.{name}"), types[name]), F.lit(name))
        for name in measures
    ]
    return grouped.select(
        "*",
        F.array_compact(F.array(*differing, F.lit(None).cast("string"))).alias("_differing"),
    ).select("*", (F.col("_has_other_rows") | (F.size("_differing") > 0)).alias("_is_different"))


def is_close(one: Column, other: Column, data_type: DataType) -> Column:
    """Return true where two values are the same; null equals null, NaN equals NaN, and -0.0 equals 0.0.

    Floating-point numbers may differ by `TOLERANCES` of the larger one, or of 1 if both are smaller.
    """
    same = _comparable(one, data_type).eqNullSafe(_comparable(other, data_type))
    tolerance = TOLERANCES.get(type(data_type))
    if tolerance is None:
        return same
    size = F.greatest(F.abs(one), F.abs(other))
    is_near = F.abs(one - other) <= F.greatest(size, F.lit(1.0)) * tolerance
    return same | F.coalesce((size < F.lit(float("inf"))) & is_near, F.lit(False))


def _comparable(value: Column, data_type: DataType) -> Column:
    """Return a value in which each map is a list of its entries by their keys: Spark compares no maps."""
    if "map<" not in data_type.simpleString():
        return value
    if isinstance(data_type, MapType):
        entry_type = StructType([StructField("key", data_type.keyType), StructField("value", data_type.valueType)])
        entries = F.transform(F.map_entries(value), lambda entry: _comparable(entry, entry_type))
        return F.array_sort(entries)
    if isinstance(data_type, ArrayType):
        return F.transform(value, lambda element: _comparable(element, data_type.elementType))
    fields = data_type.fields if isinstance(data_type, StructType) else []
    parts = (_comparable(value[part.name], part.dataType).alias(part.name) for part in fields)
    return F.when(value.isNotNull(), F.struct(*parts))


def count_untouched(joined: DataFrame, spec: GoldSpec) -> DataFrame:
    """Count by source, in one row, the joined rows whose `refresh_from` does not touch their `refresh_by`.

    Args:
        joined: the joined sources, each with the columns of `with_refresh`.
        spec: the gold table.
    """
    group = F.expr(spec.group_by[spec.refreshed_group])
    counts = []
    for alias in spec.refresh_from:
        value = F.col(f"{alias}._refresh")
        is_touched = group.eqNullSafe(value)
        if spec.reach == UNBOUNDED:
            is_touched |= F.coalesce(value <= group, F.lit(False))
        elif spec.reach:
            seconds = F.unix_timestamp(group.cast("timestamp")) - F.unix_timestamp(value.cast("timestamp"))
            is_touched |= F.coalesce(seconds.between(0, spec.reach.total_seconds()), F.lit(False))
        counts.append(F.count_if(F.col(f"{alias}._exists") & ~is_touched).alias(alias))
    return joined.agg(*counts)


def with_refresh(source: DataFrame, refresh_from: str) -> DataFrame:
    """Add `_refresh`, the value of `refresh_by` that a change of the row touches, and `_exists`, true in each row."""
    return source.select("*", F.expr(refresh_from).alias("_refresh"), F.lit(True).alias("_exists"))

"""Compare the stored groups of a gold table with computed ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructField, StructType

from millrace.contracts.spec.duration import UNBOUNDED
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.sql.query.groups import joined

TOLERANCES: dict[type[DataType], float] = {DoubleType: 1e-9, FloatType: 1e-6}
"""Type -> by which part of its size a value may differ, since a sum of such numbers depends on their order."""

LEAST, GREATEST = "_least_", "_greatest_"
"""Before the name of a column: between which values it may be, since a sum of doubles depends on their order."""


def compare_groups(stored: DataFrame, computed: DataFrame, groups: Sequence[str], measures: Sequence[str]) -> DataFrame:
    """Return one row per group of either side, by group columns in which null is a value.

    Args:
        stored: the rows of the table.
        computed: the rows that it should have, with the bounds (`LEAST`, `GREATEST`) of any measure.
        groups: the columns that identify a row.
        measures: the columns to compare.

    Returns:
        The group columns; `_stored` and `_computed`, the measures of either side, null if it has no such group;
        `_differing`, the names of the measures that differ; `_is_different`, which is also true for a group that one
        side lacks, or has twice.
    """
    types = {field.name: field.dataType for field in stored.schema.fields}
    bounds = {
        field.name: field.dataType for field in computed.schema.fields if field.name.startswith((LEAST, GREATEST))
    }
    typed = computed.withColumns({name: F.col(f"`{name}`").cast(types[name]) for name in (*groups, *measures)})
    unbounded = stored.select("*", *(F.lit(None).cast(kind).alias(name) for name, kind in bounds.items()))
    sides = [
        rows.select(
            *groups,
            F.struct(F.lit(True).alias("_exists"), *measures, *bounds).alias("_values"),
            F.lit(is_stored).alias("_is_stored"),
        )
        for rows, is_stored in ((unbounded, True), (typed, False))
    ]
    is_stored = F.col("_is_stored")
    both = reduce(DataFrame.unionByName, sides).groupBy(*groups)
    grouped = both.agg(
        F.first(F.when(is_stored, F.col("_values")), ignorenulls=True).alias("_stored"),
        F.first(F.when(~is_stored, F.col("_values")), ignorenulls=True).alias("_computed"),
        (F.count_if(is_stored) != F.count_if(~is_stored)).alias("_has_other_rows"),
    )
    differing = []
    for name in measures:
        is_same = is_close(F.col(f"_stored.{name}"), F.col(f"_computed.{name}"), types[name])
        if f"{LEAST}{name}" in bounds:
            least, greatest = (F.col(f"_computed.{bound}{name}") for bound in (LEAST, GREATEST))
            is_same |= _is_within(F.col(f"_stored.{name}"), least, greatest, types[name])
        differing.append(F.when(~is_same, F.lit(name)))
    return grouped.select(
        "*",
        F.array_compact(F.array(*differing, F.lit(None).cast("string"))).alias("_differing"),
    ).select("*", (F.col("_has_other_rows") | (F.size("_differing") > 0)).alias("_is_different"))


def is_close(one: Column, other: Column, data_type: DataType) -> Column:
    """Return true where two values are the same; null equals null, NaN equals NaN, and -0.0 equals 0.0.

    Floating-point numbers may differ by `TOLERANCES` of the larger one, or of 1 if both are smaller, also those within
    arrays, structs and maps. The order of the entries of a map does not count.
    """
    if isinstance(data_type, MapType):
        return is_close(_entries(one), _entries(other), ArrayType(_entry_type(data_type)))
    if isinstance(data_type, ArrayType):
        pairs = F.zip_with(one, other, lambda left, right: is_close(left, right, data_type.elementType))
        return _both(one, other, (F.size(one) == F.size(other)) & F.forall(pairs, lambda pair: pair))
    if isinstance(data_type, StructType):
        parts = (is_close(one[part.name], other[part.name], part.dataType) for part in data_type.fields)
        return _both(one, other, reduce(and_, parts, F.lit(True)))
    same = one.eqNullSafe(other)
    tolerance = TOLERANCES.get(type(data_type))
    if tolerance is None:
        return same
    size = F.greatest(F.abs(one), F.abs(other))
    is_near = F.abs(one - other) <= F.greatest(size, F.lit(1.0)) * tolerance
    return same | F.coalesce((size < F.lit(float("inf"))) & is_near, F.lit(False))


def _is_within(value: Column, least: Column, greatest: Column, data_type: DataType) -> Column:
    """Return true where a number is between its bounds; of a list, all numbers between those at their places."""
    if isinstance(data_type, ArrayType):
        ends = F.zip_with(least, greatest, lambda one, other: F.struct(one.alias("least"), other.alias("greatest")))
        within = F.zip_with(
            value, ends, lambda each, end: _is_within(each, end.least, end.greatest, data_type.elementType)
        )
        return F.coalesce((F.size(value) == F.size(ends)) & F.forall(within, lambda each: each), F.lit(False))
    is_finite = (least > F.lit(float("-inf"))) & (greatest < F.lit(float("inf")))
    return F.coalesce(is_finite & value.cast("double").between(least, greatest), F.lit(False))


def _both(one: Column, other: Column, are_close: Column) -> Column:
    """Return whether both values are null, or neither is and they are close."""
    return F.when(one.isNotNull() & other.isNotNull(), are_close).otherwise(one.isNull() & other.isNull())


def _entries(value: Column) -> Column:
    """Return the entries of a map by their keys."""
    return F.array_sort(F.map_entries(value), lambda one, other: F.when(one.key < other.key, -1).otherwise(1))


def _entry_type(data_type: MapType) -> StructType:
    return StructType([StructField("key", data_type.keyType), StructField("value", data_type.valueType)])


def as_groups(rows: DataFrame, groups: Sequence[str], measures: Sequence[str]) -> DataFrame:
    """Return rows that have no key as one row per group: of each measure the list of its values, the least first.

    Bounds of measures stay bounds: if each value is between two others, so are the lists of all three in order.

    Args:
        rows: the rows; several may have the same groups.
        groups: the columns that identify a group.
        measures: the other columns.

    Returns:
        The group columns and the measures, each an array with as many values as the group has rows.
    """
    types = {field.name: field.dataType for field in rows.schema.fields}
    lists = (
        F.array_sort(F.collect_list(F.struct(_sortable(F.col(name), types[name]).alias("value")))) for name in measures
    )
    values = (F.transform(each, lambda row: row.value).alias(name) for each, name in zip(lists, measures, strict=True))
    return rows.groupBy(*groups).agg(*values)


def _sortable(value: Column, data_type: DataType) -> Column:
    """Return a value in which each map is a list of its entries by their keys: Spark sorts no maps."""
    if "map<" not in data_type.simpleString():
        return value
    if isinstance(data_type, MapType):
        return F.transform(_entries(value), lambda entry: _sortable(entry, _entry_type(data_type)))
    if isinstance(data_type, ArrayType):
        return F.transform(value, lambda element: _sortable(element, data_type.elementType))
    fields = data_type.fields if isinstance(data_type, StructType) else []
    parts = (_sortable(value[part.name], part.dataType).alias(part.name) for part in fields)
    return F.when(value.isNotNull(), F.struct(*parts))


def untouched_query(spec: GoldSpec) -> str:
    """Return a SELECT that counts by source, in one row, joined rows whose `refresh_from` does not touch their group.

    Each view of a source has `_exists`, true in each row, and `_refresh`, the value that a change of the row touches.
    """
    group, counts = f"(\n{spec.group_by[spec.refreshed_group]}\n)", []
    for alias in spec.refresh_from:
        value = f"`{alias}`.`_refresh`"
        is_touched = f"{group} <=> {value}"
        if spec.reach == UNBOUNDED:
            is_touched += f" OR coalesce({value} <= {group}, false)"
        elif spec.reach:
            seconds = f"unix_timestamp(CAST({group} AS TIMESTAMP)) - unix_timestamp(CAST({value} AS TIMESTAMP))"
            is_touched += f" OR coalesce({seconds} BETWEEN 0 AND {spec.reach.total_seconds()}, false)"
        counts.append(f"count_if(`{alias}`.`_exists` AND NOT ({is_touched})) AS `{alias}`")
    return f"SELECT {', '.join(counts)}\n{joined(spec.sources)}"

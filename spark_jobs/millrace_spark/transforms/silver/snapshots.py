"""Turn full snapshots into events, for tables with history: a key that the next snapshot lacks is deleted there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace_spark.transforms.refusals import is_accepted
from millrace_spark.transforms.silver.timeline import EVENTS

_AT = "_interval_start"

DUE_IN = "_due_in"
"""The number, from 0, of the snapshot that must contain a key."""

IS_DELIVERED = "_is_delivered"
"""True if the snapshot contains the key, also if the row was refused."""


def place_of(starts: Sequence[datetime]) -> Column:
    """Return the number, from 0, of the snapshot that a row came with; null for none of the snapshots."""
    in_order = F.array(*(F.lit(start).cast("timestamp") for start in starts))
    return F.nullif(F.array_position(in_order, F.col(_AT)).cast("int"), F.lit(0)) - 1


def has_key(keys: Sequence[str]) -> Column:
    """Return true for a row whose key has no null part."""
    return ~F.greatest(*(F.col(key).isNull() for key in keys), F.lit(False))


def keys_due(
    delivered: DataFrame,
    starts: Sequence[datetime],
    keys: Sequence[str],
    current: DataFrame | None,
    cannot_tell: Collection[datetime],
) -> DataFrame:
    """Return the keys that each snapshot must contain, because the snapshot before it contained them.

    Args:
        delivered: the keys in consecutive snapshots, each with its `_interval_start`.
        starts: start of the interval of each snapshot, oldest first, including snapshots without rows.
        keys: the key columns.
        current: the keys just before the first snapshot; None if they are not known.
        cannot_tell: starts of snapshots that do not show which keys they lack; the next snapshot decides instead.

    Returns:
        `keys`, `DUE_IN` and `IS_DELIVERED`; one row per key and snapshot.
    """
    complete = [number for number, start in enumerate(starts) if start not in cannot_tell]
    following = [next((number for number in complete if number > before), None) for before in range(-1, len(starts))]
    next_of = F.array(*(F.lit(number).cast("int") for number in following))
    present = delivered.where(has_key(keys)).select(*keys, place_of(starts).alias(DUE_IN)).distinct()
    due = present.select(*keys, F.get(next_of, F.col(DUE_IN) + 1).alias(DUE_IN))
    if current is not None:
        due = due.union(current.select(*keys, F.lit(following[0]).cast("int").alias(DUE_IN)))
    due = due.where(F.col(DUE_IN).isNotNull()).distinct()
    marked = present.withColumn(IS_DELIVERED, F.lit(True))
    return due.join(marked, [*keys, DUE_IN], "left").withColumn(IS_DELIVERED, F.col(IS_DELIVERED).isNotNull())


def snapshot_events(rows: DataFrame, due: DataFrame, starts: Sequence[datetime], keys: Sequence[str]) -> DataFrame:
    """Return the states of keys in consecutive snapshots, and the deletes between them.

    Args:
        rows: the rows of the snapshots, with refusals.
        due: keys from `keys_due`.
        starts: start of the interval of each snapshot, oldest first.
        keys: the key columns.

    Returns:
        The accepted rows with `_events` 1, and a row with `_is_delete` and `_events` 0 for each delete.
    """
    in_order = F.array(*(F.lit(start).cast("timestamp") for start in starts))
    deletes = due.where(~F.col(IS_DELIVERED)).select(
        *keys,
        F.struct(F.get(in_order, F.col(DUE_IN)).alias(_AT)).alias("_sequence"),
        F.lit(0).cast("bigint").alias("_source_hash"),
        F.lit(True).alias("_is_delete"),
        F.lit(0).alias(EVENTS),
    )
    states = rows.where(is_accepted()).withColumn(EVENTS, F.lit(1))
    return states.unionByName(deletes, allowMissingColumns=True)

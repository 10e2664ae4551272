"""Full snapshots as events, for tables with history: a key that the next snapshot lacks was deleted by then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.transforms.judgement import accepted
from spark_jobs.transforms.silver.timeline import EVENTS

_AT = "_interval_start"

DUE_IN = "_due_in"
"""The number, from 0 on, of the snapshot in which a key would have to be."""

IS_DELIVERED = "_is_delivered"
"""Whether it is there, be it as a row that was refused."""


def place_of(starts: Sequence[datetime]) -> Column:
    """Which of some snapshots a row came with, by its number from 0 on; null for none of them."""
    in_order = F.array(*(F.lit(start).cast("timestamp") for start in starts))
    return F.nullif(F.array_position(in_order, F.col(_AT)).cast("int"), F.lit(0)) - 1


def has_key(keys: Sequence[str]) -> Column:
    """Whether no part of a row's key is null."""
    return ~F.greatest(*(F.col(key).isNull() for key in keys), F.lit(False))


def keys_due(
    delivered: DataFrame,
    starts: Sequence[datetime],
    keys: Sequence[str],
    current: DataFrame | None,
    cannot_tell: Collection[datetime],
) -> DataFrame:
    """The keys that must be in a snapshot, since they were in the one before it.

    Args:
        delivered: the keys in some snapshots that follow one another, each with its `_interval_start`.
        starts: start of the interval of each snapshot, oldest first, also of those without a row.
        keys: the key columns.
        current: the keys that there were just before the first snapshot; None where that is not known.
        cannot_tell: the snapshots that do not say which keys they lack; their successor is asked instead.

    Returns:
        `keys`, `DUE_IN` and `IS_DELIVERED`; a key once a snapshot.
    """
    ask = [number for number, start in enumerate(starts) if start not in cannot_tell]
    following = [next((number for number in ask if number > before), None) for before in range(-1, len(starts))]
    next_of = F.array(*(F.lit(number).cast("int") for number in following))
    present = delivered.where(has_key(keys)).select(*keys, place_of(starts).alias(DUE_IN)).distinct()
    due = present.select(*keys, F.get(next_of, F.col(DUE_IN) + 1).alias(DUE_IN))
    if current is not None:
        due = due.union(current.select(*keys, F.lit(following[0]).cast("int").alias(DUE_IN)))
    found = due.where(F.col(DUE_IN).isNotNull()).distinct()
    there = present.withColumn(IS_DELIVERED, F.lit(True))
    return found.join(there, [*keys, DUE_IN], "left").withColumn(IS_DELIVERED, F.col(IS_DELIVERED).isNotNull())


def snapshot_events(rows: DataFrame, due: DataFrame, starts: Sequence[datetime], keys: Sequence[str]) -> DataFrame:
    """The states of keys in some snapshots that follow one another, and the deletes between them.

    Args:
        rows: the judged rows of the snapshots.
        due: as from `keys_due`.
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
    states = rows.where(accepted()).withColumn(EVENTS, F.lit(1))
    return states.unionByName(deletes, allowMissingColumns=True)

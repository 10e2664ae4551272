"""Truncates: events that delete every key at once, of tables that keep the last state alone.

A truncate is a delete without keys. What is no later than the last one is gone, whenever it arrives; so the last one is
remembered among the tombstones, without keys as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.transforms.silver.changes import DELETE, SUPERSEDED, TRUNCATE, UNCHANGED, UPDATE, absent_rows


def is_truncate(keys: Sequence[str]) -> Column:
    """True for an event, or a tombstone, of all keys."""
    return reduce(and_, (F.col(key).isNull() for key in keys))


def truncates(latest: DataFrame, tombstones: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """One row: `_now`, the sequence of the last truncate of a batch, and `_before`, of those before it, or nulls."""
    now = latest.where(is_truncate(keys)).agg(F.max("_sequence").alias("_now"))
    if tombstones is None:
        return now.withColumn("_before", F.lit(None).cast(now.schema["_now"].dataType))
    return now.crossJoin(tombstones.where(is_truncate(keys)).agg(F.max("_sequence").alias("_before")))


def with_truncates(fates: DataFrame, target: DataFrame, last: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The fates of a batch as the truncates leave them, and the target's rows that go.

    Those are the rows that a truncate of the batch deletes, and those of keys that are worked out anew of which nothing
    is left but what a truncate took away.

    Args:
        fates: the latest event of each key, and the last truncate, with `_sequence` and `_fate`.
        target: the target's keys and their `_sequence`, of all keys where the batch has a truncate.
        last: one row, as from `truncates`.
        keys: the key columns.
    """
    told = fates.crossJoin(last)
    is_new = F.col("_before").isNull() | (F.col("_now") > F.col("_before"))
    is_gone = F.col("_sequence") <= F.greatest("_now", "_before")
    fate = (
        F.when(is_truncate(keys), F.when(is_new, TRUNCATE).otherwise(UNCHANGED))
        .when(is_gone, SUPERSEDED)
        .otherwise(F.col("_fate"))
    )
    later = told.where(~F.coalesce(is_gone, F.lit(False)))
    was_to_change = told.where(is_gone & F.col("_fate").isin(UPDATE, DELETE))
    without_event = target.join(was_to_change.select(*keys, F.lit(True).alias("_without")), list(keys), "left")
    deleted = without_event.crossJoin(last).where((F.col("_sequence") <= F.col("_now")) | F.col("_without"))
    gone = absent_rows(later.select(*keys), deleted, keys)
    return told.withColumn("_fate", fate).select(*fates.columns).unionByName(gone, allowMissingColumns=True)

"""Truncates: events that delete all keys at once, for tables that keep only the last state.

A truncate is a delete without keys. It removes every event that is not later, whenever that event arrives; so the last
truncate is kept among the tombstones, also without keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace_spark.transforms.silver.changes import DELETE, SUPERSEDED, TRUNCATE, UNCHANGED, UPDATE, absent_rows


def is_truncate(keys: Sequence[str]) -> Column:
    """Return true for an event, or a tombstone, of all keys."""
    return reduce(and_, (F.col(key).isNull() for key in keys))


def truncates(latest: DataFrame, tombstones: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """Return one row: `_now`, the sequence of a batch's last truncate, and `_before`, of earlier batches; or nulls."""
    now = latest.where(is_truncate(keys)).agg(F.max("_sequence").alias("_now"))
    if tombstones is None:
        return now.withColumn("_before", F.lit(None).cast(now.schema["_now"].dataType))
    return now.crossJoin(tombstones.where(is_truncate(keys)).agg(F.max("_sequence").alias("_before")))


def with_truncates(actions: DataFrame, target: DataFrame, last: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Apply truncates to the row actions of a batch, and add the target's rows that they remove.

    These rows are the ones that a truncate of the batch deletes, and those of recomputed keys that have only truncated
    events left.

    Args:
        actions: the latest event of each key, and the last truncate, with `_sequence` and `_action`.
        target: the target's keys and their `_sequence`, of all keys where the batch has a truncate.
        last: one row from `truncates`.
        keys: the key columns.
    """
    rows = actions.crossJoin(last)
    is_new = F.col("_before").isNull() | (F.col("_now") > F.col("_before"))
    is_gone = F.col("_sequence") <= F.greatest("_now", "_before")
    action = (
        F.when(is_truncate(keys), F.when(is_new, TRUNCATE).otherwise(UNCHANGED))
        .when(is_gone, SUPERSEDED)
        .otherwise(F.col("_action"))
    )
    later = rows.where(~F.coalesce(is_gone, F.lit(False)))
    replaced = rows.where(is_gone & F.col("_action").isin(UPDATE, DELETE))
    without_event = target.join(replaced.select(*keys, F.lit(True).alias("_without")), list(keys), "left")
    deleted = without_event.crossJoin(last).where((F.col("_sequence") <= F.col("_now")) | F.col("_without"))
    gone = absent_rows(later.select(*keys), deleted, keys)
    return rows.withColumn("_action", action).select(*actions.columns).unionByName(gone, allowMissingColumns=True)

"""Full snapshots as events, for tables with history: a key that the next snapshot lacks was deleted by then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.transforms.judgement import accepted
from spark_jobs.transforms.timeline import EVENTS

_AT = "_interval_start"


def snapshot_events(
    rows: DataFrame, starts: Sequence[datetime], keys: Sequence[str], current: DataFrame | None
) -> DataFrame:
    """The states of keys in some snapshots that follow one another, and the deletes between them.

    Args:
        rows: the judged rows of the snapshots; one that was refused counts as delivered.
        starts: start of the interval of each snapshot, oldest first, also of those without a row.
        keys: the key columns.
        current: the keys that there were just before the first snapshot; None where that is not known.

    Returns:
        The accepted rows with `_events` 1, and a row with `_is_delete` and `_events` 0 for each delete.
    """
    in_order = F.array(*(F.lit(start).cast("timestamp") for start in starts))
    has_key = reduce(and_, (F.col(key).isNotNull() for key in keys))
    present = rows.where(has_key).select(*keys, _AT).distinct()
    following = F.get(in_order, F.array_position(in_order, F.col(_AT)).cast("int"))
    due = present.select(*keys, following.alias(_AT)).where(F.col(_AT).isNotNull())
    if current is not None:
        due = due.union(current.select(*keys, F.get(in_order, F.lit(0)).alias(_AT)))
    missing = due.join(present, [*keys, _AT], "left_anti")
    deletes = missing.select(
        *keys,
        F.struct(_AT).alias("_sequence"),
        F.lit(0).cast("bigint").alias("_source_hash"),
        F.lit(True).alias("_is_delete"),
        F.lit(0).alias(EVENTS),
    )
    states = rows.where(accepted()).withColumn(EVENTS, F.lit(1))
    return states.unionByName(deletes, allowMissingColumns=True)

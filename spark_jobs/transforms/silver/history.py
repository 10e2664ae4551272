"""History (SCD type 2): the periods in which each state of a key held, from the sequence of its events alone.

A period begins with an event that changes a tracked column, and ends where the next one begins or the key is deleted.
No clock is asked: the same events in any order, and however often, give the same periods.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from spark_jobs.transforms.silver.changes import ABSENT, INSERT, ORDER, UNCHANGED, UPDATE, row_hash
from spark_jobs.transforms.silver.ties import TIED
from spark_jobs.transforms.silver.timeline import END_AT, EVENTS, START_AT, start_of

CONTENT = "_content_hash"


def periods(
    states: DataFrame, keys: Sequence[str], columns: Sequence[str], tracked: Sequence[str], sequence_by: Sequence[str]
) -> DataFrame:
    """The periods that a timeline makes.

    Args:
        states: a timeline, as from `timeline`.
        keys: the key columns.
        columns: the columns that the table stores.
        tracked: those of which a change begins a new period; the others have their last value in it.
        sequence_by: the fields of `_sequence`.

    Returns:
        A row a period: `columns`, `_sequence` and `_source_hash` of its last event, `_content_hash`, `__START_AT`,
        `__END_AT`, `_events`, `_tied`, and `_is_delete`, whether a delete ended it. A delete that ends nothing is a
        row without `__START_AT`, with its own `_sequence`.
    """
    numbered = states.withColumn("_period", F.sum(_begins(keys, tracked).cast("int")).over(_by_key(keys)))
    grouped = numbered.groupBy(*keys, "_period").agg(*_facts(states.columns))
    following = F.lead("_first._sequence").over(Window.partitionBy(*keys).orderBy("_period"))
    own_start = start_of(F.col("_first._sequence"), sequence_by)
    ends = start_of(F.coalesce(F.col("_deleted"), following), sequence_by)
    is_state = F.col("_last").isNotNull()
    return grouped.select(
        *keys,
        *(F.col(f"_last.{name}").alias(name) for name in (*columns, "_source_hash") if name not in keys),
        F.coalesce("_last._sequence", "_deleted").alias("_sequence"),
        F.when(is_state, F.coalesce(f"_first.{START_AT}", own_start)).alias(START_AT),
        F.when(is_state, ends).alias(END_AT),
        F.col("_deleted").isNotNull().alias("_is_delete"),
        EVENTS,
        TIED,
    ).withColumn(CONTENT, row_hash(columns))


def with_row_fate(found: DataFrame, held: DataFrame, keys: Sequence[str], *, by_order: bool = True) -> DataFrame:
    """Add `_fate`: what becomes of each row of the target, and of each period that it lacks.

    Args:
        found: periods, as from `periods`.
        held: the target's rows of the same keys that a period can change or take the place of, with `_sequence`,
            `_source_hash`, `_content_hash`, `__START_AT` and `__END_AT`.
        keys: the key columns.
        by_order: whether a period that has got a later event with the same values changes, so that it is known how far
            the events go; of full snapshots their intervals tell.
    """
    compared = (*(ORDER if by_order else ()), CONTENT, END_AT)
    target = held.select(*keys, START_AT, F.struct(*compared).alias("_target"))
    joined = found.where(F.col(START_AT).isNotNull()).join(target, [*keys, START_AT], "full")
    same = F.col("_target").eqNullSafe(F.struct(*compared))
    fate = (
        F.when(F.col(EVENTS).isNull(), ABSENT)
        .when(F.col("_target").isNull(), INSERT)
        .when(same, UNCHANGED)
        .otherwise(UPDATE)
    )
    without_effect = found.where(F.col(START_AT).isNull()).withColumn("_fate", F.lit(UNCHANGED))
    return joined.withColumn("_fate", fate).drop("_target").unionByName(without_effect)


def broken_keys(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The keys whose periods overlap, end before they begin, or go on beside another; with `periods`, how many it has.

    Args:
        rows: rows of a table with history, all of each key.
        keys: the key columns.
    """
    following = F.lead(START_AT).over(Window.partitionBy(*keys).orderBy(START_AT))
    checked = rows.select(*keys, START_AT, END_AT, following.alias("_next"))
    too_late = F.col("_next").isNotNull() & (F.col(END_AT).isNull() | (F.col(END_AT) > F.col("_next")))
    wrong = too_late | (F.col(END_AT) <= F.col(START_AT))
    counts = F.count(F.lit(1)).alias("periods"), F.max(F.coalesce(wrong, F.lit(False))).alias("_wrong")
    return checked.groupBy(*keys).agg(*counts).where("_wrong").drop("_wrong")


def _begins(keys: Sequence[str], tracked: Sequence[str]) -> Column:
    """Whether a state begins a period. A delete belongs to the period that it ends, if there is one."""
    is_delete = F.col("_is_delete")
    said = F.struct(is_delete.alias("_is_delete"), row_hash(tracked).alias("_said"))
    before = F.lag(said).over(_by_key(keys))
    after_nothing = before.isNull() | before["_is_delete"]
    return after_nothing | (~is_delete & (before["_said"] != said["_said"]))


def _facts(columns: Sequence[str]) -> list[Column]:
    """Of a period: its first event, its last state, the delete that ended it, and how many rows it stands for."""
    is_state = ~F.col("_is_delete")
    return [
        F.min_by(F.struct("_sequence", START_AT), F.col("_sequence")).alias("_first"),
        F.max_by(F.when(is_state, F.struct(*columns)), F.when(is_state, F.col("_sequence"))).alias("_last"),
        F.max(F.when(F.col("_is_delete"), F.col("_sequence"))).alias("_deleted"),
        F.sum(EVENTS).alias(EVENTS),
        F.bool_or(TIED).alias(TIED),
    ]


def _by_key(keys: Sequence[str]) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy("_sequence")

"""History (SCD type 2): compute the period of each state of a key from the sequence of its events.

A period begins with an event that changes a tracked column, and ends where the next period begins or the key is
deleted. No clock is read: the same events, in any order and however often, give the same periods.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from millrace_spark.transforms.silver.changes import ABSENT, INSERT, ORDER, UNCHANGED, UPDATE, row_hash
from millrace_spark.transforms.silver.ties import TIED
from millrace_spark.transforms.silver.timeline import END_AT, EVENTS, START_AT, start_of

CONTENT = "_content_hash"


def periods(
    states: DataFrame,
    keys: Sequence[str],
    columns: Sequence[str],
    tracked: Sequence[str],
    sequence_by: Sequence[str],
    nested: Collection[str] = (),
) -> DataFrame:
    """Compute the periods of a timeline.

    Args:
        states: a timeline from `timeline`.
        keys: the key columns.
        columns: the columns that the table stores.
        tracked: the columns whose change begins a new period; the other columns have their last value of the period.
        sequence_by: the fields of `_sequence`.
        nested: the columns that are structs, arrays or maps.

    Returns:
        One row per period: `columns`, `_sequence` and `_source_hash` of its last event, `_content_hash`, `__START_AT`,
        `__END_AT`, `_events`, `_tied`, and `_is_delete`: true if a delete ended the period. A delete that ends no
        period is a row without `__START_AT`, with its own `_sequence`.
    """
    numbered = states.withColumn("_period", F.sum(_begins(keys, tracked, nested).cast("int")).over(_by_key(keys)))
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
    ).withColumn(CONTENT, row_hash(columns, nested))


def with_period_action(
    computed: DataFrame, current: DataFrame, keys: Sequence[str], *, by_order: bool = True
) -> DataFrame:
    """Add `_action` to each computed period, and to each row of the target that has no such period any more.

    Args:
        computed: periods from `periods`.
        current: the target's rows of the same keys that a period can change or replace, with `_sequence`,
            `_source_hash`, `_content_hash`, `__START_AT` and `__END_AT`.
        keys: the key columns.
        by_order: whether a later event with the same values updates its period, so that the table shows its last event.
            Full snapshots do not need that: their intervals show it.
    """
    compared = (*(ORDER if by_order else ()), CONTENT, END_AT)
    target = current.select(*keys, START_AT, F.struct(*compared).alias("_target"))
    joined = computed.where(F.col(START_AT).isNotNull()).join(target, [*keys, START_AT], "full")
    same = F.col("_target").eqNullSafe(F.struct(*compared))
    action = (
        F.when(F.col(EVENTS).isNull(), ABSENT)
        .when(F.col("_target").isNull(), INSERT)
        .when(same, UNCHANGED)
        .otherwise(UPDATE)
    )
    without_effect = computed.where(F.col(START_AT).isNull()).withColumn("_action", F.lit(UNCHANGED))
    return joined.withColumn("_action", action).drop("_target").unionByName(without_effect)


def broken_keys(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the keys whose periods overlap, or end before they begin; with their number of `periods`.

    Args:
        rows: rows of a table with history; for each key, all its rows.
        keys: the key columns.
    """
    following = F.lead(START_AT).over(Window.partitionBy(*keys).orderBy(START_AT))
    checked = rows.select(*keys, START_AT, END_AT, following.alias("_next"))
    too_late = F.col("_next").isNotNull() & (F.col(END_AT).isNull() | (F.col(END_AT) > F.col("_next")))
    wrong = too_late | (F.col(END_AT) <= F.col(START_AT))
    counts = F.count(F.lit(1)).alias("periods"), F.max(F.coalesce(wrong, F.lit(False))).alias("_wrong")
    return checked.groupBy(*keys).agg(*counts).where("_wrong").drop("_wrong")


def _begins(keys: Sequence[str], tracked: Sequence[str], nested: Collection[str]) -> Column:
    """Return true where a state begins a period. A delete belongs to the period that it ends, if there is one."""
    is_delete = F.col("_is_delete")
    state = F.struct(is_delete.alias("_is_delete"), row_hash(tracked, nested).alias("_tracked"))
    previous = F.lag(state).over(_by_key(keys))
    is_first = previous.isNull() | previous["_is_delete"]
    return is_first | (~is_delete & (previous["_tracked"] != state["_tracked"]))


def _facts(columns: Sequence[str]) -> list[Column]:
    """Return aggregates of a period: first event, last state, the delete that ended it, events and ties."""
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

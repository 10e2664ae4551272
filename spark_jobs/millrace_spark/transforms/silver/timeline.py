"""The events of each key in their order: one event per sequence, after the target's own row.

Where a state depends on the events before it (SCD type 2, `ignore_null_updates`), events that come in their order
follow the target's row, and no other row is read. An event that comes **late** belongs before the target's row, whose
own events are not in the target any more: then all events of the key are read again from the source and ordered.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from millrace_spark.transforms.silver.changes import ORDER, join_state, order_of
from millrace_spark.transforms.silver.ties import TIED, is_fixed, state_hash

START_AT, END_AT = "__START_AT", "__END_AT"
"""The sequences where a state begins and ends; no end while it is current. The names are those of AutoCDC."""

EVENTS = "_events"
"""The number of accepted rows of a batch that a result row represents."""

IS_STORED = "_is_stored"
"""True for the target's own row, false for an event."""

_LEFT = "_left"


def late_keys(events: DataFrame, current: DataFrame, tombstones: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """Return the keys that have an event which comes after a later event, one row per key.

    Of two events with the same sequence, the second to come is late, unless it equals the first.

    Args:
        events: accepted rows with `_sequence` and `_source_hash`.
        current: the target's current row of each key, with the same columns.
        tombstones: deleted keys with the same columns; None where the table has no deletes.
        keys: the key columns.
    """
    joined = join_state(events.select(*keys, *ORDER), current.select(*keys, *ORDER), keys, "_target")
    stored = order_of("_target")
    if tombstones is not None:
        joined = join_state(joined, tombstones.select(*keys, *ORDER), keys, "_tombstone")
        stored = F.greatest(stored, order_of("_tombstone"))
    is_late = (F.col("_sequence") <= stored["_sequence"]) & (stored != F.struct(*ORDER))
    return joined.where(is_late).select(*keys).distinct()


def timeline(events: DataFrame, current: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return one row per key and sequence: the target's own row, else the event with the greatest hash.

    Args:
        events: accepted rows with `columns`, `_sequence`, `_source_hash`, `_content_hash`, `_is_delete`, and
            `_events`, the number of rows of the batch that the event represents.
        current: the target's current rows that the events follow, with `columns`, `_sequence`, `_source_hash` and
            `__START_AT`.
        keys: the key columns.
        columns: the columns that the table stores, the keys among them.

    Returns:
        `columns`, `_sequence`, `_source_hash`, `_is_delete`, `_is_stored`, `_events`, `_tied`, and `__START_AT` of the
        target's rows.
    """
    shared = [*columns, *ORDER]
    new = events.select(*shared, "_is_delete", F.lit(False).alias(IS_STORED), EVENTS, state_hash().alias(_LEFT))
    own = {"_is_delete": F.lit(False), IS_STORED: F.lit(True), EVENTS: F.lit(0)}
    stored = current.select(*shared, START_AT, *(value.alias(name) for name, value in own.items()))
    both = new.unionByName(stored, allowMissingColumns=True)
    wins = F.max_by(F.struct(*both.drop(EVENTS, _LEFT).columns), F.struct(IS_STORED, "_source_hash")).alias("_wins")
    # An event that the target's row already has is counted once more.
    event_count = F.max(EVENTS).alias(EVENTS)
    tied = (F.min(_LEFT) != F.max(_LEFT)) & ~is_fixed(F.max("_source_hash"))
    return both.groupBy(*keys, "_sequence").agg(wins, event_count, tied.alias(TIED)).select("_wins.*", EVENTS, TIED)


def fill_nulls(states: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return a timeline in which a null keeps the earlier value of the column since the key's last delete."""
    before = Window.partitionBy(*keys).orderBy("_sequence")
    lives = states.withColumn("_life", F.sum(F.col("_is_delete").cast("int")).over(before))
    in_life = Window.partitionBy(*keys, "_life").orderBy("_sequence")
    values = {
        name: F.last(F.when(~F.col("_is_delete"), F.col(name)), ignorenulls=True).over(in_life)
        for name in columns
        if name not in keys
    }
    return lives.withColumns(values).drop("_life")


def last_states(states: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the last row of each key of a timeline; `_events` is the number of events that it results from."""
    newest = F.max_by(F.struct(*states.drop(EVENTS, TIED).columns), F.col("_sequence")).alias("_newest")
    facts = F.sum(EVENTS).alias(EVENTS), F.bool_or(TIED).alias(TIED)
    return states.groupBy(*keys).agg(newest, *facts).select("_newest.*", EVENTS, TIED)


def start_of(sequence: Column, columns: Sequence[str]) -> Column:
    """Return a sequence in the form of `__START_AT`: the value itself of a single column, else the struct."""
    return sequence[columns[0]] if len(columns) == 1 else sequence

"""The events of each key in their order: one for each sequence, on top of what the target holds already.

Where a state depends on the events before it (SCD type 2, `ignore_null_updates`), events that come in their order are
put on top of the target's row, and that is all there is to read. An event that comes **late** belongs below something
that is there already, whose own events are not in the target any more: then everything that the source holds of the
key is put in order anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.transforms.silver.changes import ORDER, join_state, order_of
from spark_jobs.transforms.silver.ties import TIED, is_mended, left_behind

START_AT, END_AT = "__START_AT", "__END_AT"
"""From which sequence on a state held, and until which; null while it still does. The names are those of AutoCDC."""

EVENTS = "_events"
"""How many of a batch's accepted rows a row of the outcome stands for."""

HELD = "_held"
"""True for the target's own row, false for an event."""

_LEFT = "_left"


def late_keys(events: DataFrame, held: DataFrame, tombstones: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """The keys of events that come after a later one: one row a key.

    Of two events with one sequence the second to come counts as late, unless it is the first one again.

    Args:
        events: accepted rows with `_sequence` and `_source_hash`.
        held: the target's current row of each key, with the same.
        tombstones: deleted keys with the same; None where the table has no deletes.
        keys: the key columns.
    """
    joined = join_state(events.select(*keys, *ORDER), held.select(*keys, *ORDER), keys, "_target")
    known = order_of("_target")
    if tombstones is not None:
        joined = join_state(joined, tombstones.select(*keys, *ORDER), keys, "_tombstone")
        known = F.greatest(known, order_of("_tombstone"))
    asked = joined.withColumn("_known", known)
    is_known = F.col("_known") == F.struct(*ORDER)
    return asked.where((F.col("_sequence") <= F.col("_known._sequence")) & ~is_known).select(*keys).distinct()


def timeline(events: DataFrame, held: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """One row a key and sequence: the target's own, else the event with the greatest hash.

    Args:
        events: accepted rows with `columns`, `_sequence`, `_source_hash`, `_content_hash`, `_is_delete`, and as
            `_events` how many rows of the batch each stands for.
        held: the target's current rows of keys on whose top the events go, with `columns`, `_sequence`, `_source_hash`
            and `__START_AT`.
        keys: the key columns.
        columns: the columns that the table stores, the keys among them.

    Returns:
        `columns`, `_sequence`, `_source_hash`, `_is_delete`, `_held`, `_events`, `_tied`, and `__START_AT` of the
        target's rows.
    """
    shared = [*columns, *ORDER]
    mine = events.select(*shared, "_is_delete", F.lit(False).alias(HELD), EVENTS, left_behind().alias(_LEFT))
    own = {"_is_delete": F.lit(False), HELD: F.lit(True), EVENTS: F.lit(0)}
    known = held.select(*shared, START_AT, *(value.alias(name) for name, value in own.items()))
    both = mine.unionByName(known, allowMissingColumns=True)
    wins = F.max_by(F.struct(*both.drop(EVENTS, _LEFT).columns), F.struct(HELD, "_source_hash")).alias("_wins")
    # An event that is the target's own once more stands beside it, and is counted.
    counted = F.max(EVENTS).alias(EVENTS)
    tied = (F.min(_LEFT) != F.max(_LEFT)) & ~is_mended(F.max("_source_hash"))
    return both.groupBy(*keys, "_sequence").agg(wins, counted, tied.alias(TIED)).select("_wins.*", EVENTS, TIED)


def filled(states: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """A timeline in which a null leaves a column as it was, since the key was deleted last."""
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
    """The last row of each key of a timeline; `_events` is how many events made it what it is."""
    newest = F.max_by(F.struct(*states.drop(EVENTS, TIED).columns), F.col("_sequence")).alias("_newest")
    facts = F.sum(EVENTS).alias(EVENTS), F.bool_or(TIED).alias(TIED)
    return states.groupBy(*keys).agg(newest, *facts).select("_newest.*", EVENTS, TIED)


def start_of(sequence: Column, columns: Sequence[str]) -> Column:
    """A sequence as `__START_AT` has it: the value itself where it is one column, else all of them."""
    return sequence[columns[0]] if len(columns) == 1 else sequence

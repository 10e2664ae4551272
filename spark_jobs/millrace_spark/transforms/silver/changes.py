"""Change data by key and sequence (SCD type 1): find which rows change the target, and how.

The state of a key is its greatest event by (`_sequence`, `_source_hash`), in whatever order the events arrive: a row,
or only a tombstone for a delete. So any order and repetition of batches gives the same rows. Both values come from the
event as received. So a changed spec changes the content that is read from an event, but not the event's place in order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.spec.column_types import TEXTUAL, TYPES, WHOLE_NUMBERS
from millrace_spark.transforms.silver.ties import DELETED, TIED, is_fixed, newest_states_differ, state_hash
from millrace_spark.transforms.values.nested_values import EXACT_TIMES

ORDER = ("_sequence", "_source_hash")
"""The order of the events of one key; the hash of the event as received decides between events of the same sequence."""

INSERT, UPDATE, DELETE, ABSENT = "insert", "update", "delete", "absent"
TRUNCATE = "truncate"
UNCHANGED, SUPERSEDED = "unchanged", "superseded"
CHANGES = (INSERT, UPDATE, DELETE, ABSENT)
"""The row actions that change the target; `absent` removes a row that a full snapshot lacks or a truncate deleted."""

FEW_KEYS = 500_000
"""Up to this number, Spark can broadcast keys to the rows of a target, instead of sorting the target by its keys."""

FEW_CHANGES = 50_000
"""Up to this number, Spark can broadcast whole rows."""


def row_hash(columns: Sequence[str], nested: Collection[str] = ()) -> Column:
    """Return a hash of a row's names and values. It skips nulls, so that a new column changes no hash of an old row.

    `xxhash64` ignores nulls, also those in structs: without the names, (null, 1) and (1, null) would have the same
    hash. It takes no maps at all.

    Args:
        columns: the columns of the row.
        nested: those of them that are structs, arrays or maps; they count as JSON, which names their parts.
    """
    values = {name: F.to_json(name, EXACT_TIMES) if name in nested else F.col(name) for name in sorted(columns)}
    named = [(F.when(F.col(name).isNotNull(), F.lit(name)), value) for name, value in values.items()]
    return F.xxhash64(*(part for pair in named for part in pair))


def latest_per_key(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the greatest event of each key with all columns of `df`, and `_tied`: true if another event ties."""
    newest = F.max_by(F.struct(*df.columns), F.struct(*ORDER)).alias("_newest")
    events = df.groupBy(*keys).agg(newest, newest_states_differ().alias("_differ"))
    return events.select("_newest.*", (F.col("_differ") & ~is_fixed(F.col("_newest._source_hash"))).alias(TIED))


def repeated_keys(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the keys that `df` has more than once."""
    return df.groupBy(*keys).count().where("count > 1").select(*keys)


def rows_of_keys(target: DataFrame, df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows of `target` whose keys are in `df`; `df` must be small enough to broadcast."""
    return target.join(F.broadcast(df.select(*keys)), list(keys), "left_semi")


def with_action(
    latest: DataFrame,
    target: DataFrame,
    tombstones: DataFrame | None,
    keys: Sequence[str],
    recompute: Column | None = None,
) -> DataFrame:
    """Add `_action` to the latest event of each key.

    Args:
        latest: one row per key, with `_sequence`, `_source_hash`, `_content_hash`, `_is_delete` and `_tied`.
        target: the target's keys and their `_sequence`, `_source_hash` and `_content_hash`.
        tombstones: deleted keys with `_sequence` and `_source_hash`; None where the table has no deletes.
        keys: the key columns.
        recompute: true for an event that is not compared with the stored order of its key; never null.
    """
    joined = join_state(latest, target, keys, "_target")
    stored, stored_state = order_of("_target"), F.col("_target._content_hash")
    if tombstones is not None:
        joined = join_state(joined, tombstones.select(*keys, *ORDER), keys, "_tombstone")
        stored = F.greatest(stored, order_of("_tombstone"))
        stored_state = F.when(stored == order_of("_tombstone"), DELETED).otherwise(stored_state)
    own = F.struct(*ORDER)
    exists, is_delete = F.col("_target").isNotNull(), F.col("_is_delete")
    same = (order_of("_target") == own) & (F.col("_target._content_hash") == F.col("_content_hash"))
    is_late = stored > own if recompute is None else ~recompute & (stored > own)
    action = (
        F.when(is_late, SUPERSEDED)
        .when(is_delete & ~exists, UNCHANGED)
        .when(is_delete, DELETE)
        .when(same, UNCHANGED)
        .when(exists, UPDATE)
        .otherwise(INSERT)
    )
    # The same event has another state after a change of the spec.
    is_other = stored["_source_hash"] != F.col("_source_hash")
    ties = (stored["_sequence"] == F.col("_sequence")) & is_other & (stored_state != state_hash())
    is_delivered = ~is_fixed(F.greatest(stored["_source_hash"], F.col("_source_hash")))
    if recompute is not None:  # What is stored was made of an earlier form of the same event.
        is_delivered &= ~recompute
    tied = F.col(TIED) | F.coalesce(ties & is_delivered, F.lit(False))
    return joined.withColumns({"_action": action, TIED: tied}).select(*latest.columns, "_action")


def with_snapshot_action(snapshot: DataFrame, target: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Add `_action` to the rows of a full snapshot: insert, update, or unchanged for the same content."""
    joined = join_state(snapshot, target, keys, "_target")
    same = F.col("_target._content_hash") == F.col("_content_hash")
    action = F.when(F.col("_target").isNull(), INSERT).when(same, UNCHANGED).otherwise(UPDATE)
    return joined.withColumn("_action", action).select(*snapshot.columns, "_action")


def absent_rows(delivered_keys: DataFrame, target: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the target's keys that were not delivered, with `_action` `absent`; a refused row is a delivered one."""
    return target.select(*keys).join(delivered_keys, list(keys), "left_anti").withColumn("_action", F.lit(ABSENT))


def key_bounds(keys: Mapping[str, str], where: Column) -> list[Column]:
    """Return aggregates `min_<key>` and `max_<key>` of the orderable keys, over the rows where `where` is true."""
    orderable = [name for name, kind in keys.items() if is_orderable(kind)]
    return [
        bound(F.when(where, F.col(name))).cast("string").alias(f"{label}_{name}")
        for name in orderable
        for label, bound in (("min", F.min), ("max", F.max))
    ]


def is_orderable(kind: str) -> bool:
    """Whether Delta can prune files by bounds of this type, written as literals."""
    return kind in TEXTUAL


def within(keys: Mapping[str, str], bounds: Mapping[str, str | None]) -> Column:
    """Return a condition that is true for the target rows that can match a batch with these key bounds."""
    return reduce(and_, map(F.expr, bounds_sql(keys, bounds)), F.lit(True))


def bounds_sql(keys: Mapping[str, str], bounds: Mapping[str, str | None], alias: str = "") -> list[str]:
    """Return `key BETWEEN literal AND literal` for each orderable key.

    >>> bounds_sql({"d": "date"}, {"min_d": "2013-01-01", "max_d": "2013-01-03"}, "t.")
    ["t.`d` BETWEEN DATE'2013-01-01' AND DATE'2013-01-03'"]
    """
    ranges = [(name, kind, bounds.get(f"min_{name}"), bounds.get(f"max_{name}")) for name, kind in keys.items()]
    return [
        f"{alias}`{name}` BETWEEN {_literal(low, kind)} AND {_literal(high, kind)}"
        for name, kind, low, high in ranges
        if low is not None and high is not None
    ]


def _literal(text: str, kind: str) -> str:
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return text if kind in WHOLE_NUMBERS else f"{TYPES[kind].literal}{quoted}"


def order_of(state: str) -> Column:
    """Return the order of the joined state of this name; null where there is no state."""
    return F.when(F.col(state).isNotNull(), F.struct(*(F.col(f"{state}.{name}") for name in ORDER)))


def join_state(df: DataFrame, state: DataFrame, keys: Sequence[str], name: str) -> DataFrame:
    """Add the state of each row's key as the struct `name`; null for a key without a state."""
    values = F.struct(*(column for column in state.columns if column not in keys))
    return df.join(state.select(*keys, values.alias(name)), list(keys), "left")

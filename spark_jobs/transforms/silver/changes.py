"""Change data by key and sequence (SCD type 1): which rows change the target, and how.

The state of a key is its greatest event by (`_sequence`, `_source_hash`), whatever order the events arrive in: a row,
or for a delete nothing but a tombstone. Hence any order and repetition of batches ends in the same rows. The order is
one of the events as received: a spec that reads the same event otherwise changes the row's content, not its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.transforms.silver.ties import DELETED, TIED, differ_at_the_newest, is_mended, left_behind

ORDER = ("_sequence", "_source_hash")
"""What orders the events of one key; the hash of the event as received settles ties, whichever arrives first."""

INSERT, UPDATE, DELETE, ABSENT = "insert", "update", "delete", "absent"
TRUNCATE = "truncate"
UNCHANGED, SUPERSEDED = "unchanged", "superseded"
CHANGES = (INSERT, UPDATE, DELETE, ABSENT)
"""The fates that change the target; `absent` is a target row that a full snapshot lacks, or a truncate takes away."""


FEW_KEYS = 500_000
"""So many keys can be sent to wherever rows of a target are, instead of sorting these by their keys."""

FEW_CHANGES = 50_000
"""The same for whole rows."""


def row_hash(columns: Sequence[str]) -> Column:
    """A hash of a row's values by name; a null counts as nothing, so that a new column leaves old rows' hashes alone.

    `xxhash64` passes over nulls: without the names, (null, 1) would hash like (1, null).
    """
    named = [(F.when(F.col(name).isNotNull(), F.lit(name)), F.col(name)) for name in sorted(columns)]
    return F.xxhash64(*(part for pair in named for part in pair))


def latest_per_key(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The greatest event of each key, with all columns of `df`, and `_tied`: whether another one contends with it."""
    newest = F.max_by(F.struct(*df.columns), F.struct(*ORDER)).alias("_newest")
    found = df.groupBy(*keys).agg(newest, differ_at_the_newest().alias("_differ"))
    return found.select("_newest.*", (F.col("_differ") & ~is_mended(F.col("_newest._source_hash"))).alias(TIED))


def repeated_keys(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The keys that `df` has more than once."""
    return df.groupBy(*keys).count().where("count > 1").select(*keys)


def of_few_keys(target: DataFrame, df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows of `target` whose keys `df` has; these are few."""
    return target.join(F.broadcast(df.select(*keys)), list(keys), "left_semi")


def with_fate(
    latest: DataFrame,
    target: DataFrame,
    tombstones: DataFrame | None,
    keys: Sequence[str],
    anew: Column | None = None,
) -> DataFrame:
    """Add `_fate` to the latest event of each key.

    Args:
        latest: one row a key, with `_sequence`, `_source_hash`, `_content_hash`, `_is_delete` and `_tied`.
        target: the target's keys and their `_sequence`, `_source_hash` and `_content_hash`.
        tombstones: deleted keys with `_sequence` and `_source_hash`; None where the table has no deletes.
        keys: the key columns.
        anew: true for an event that is not compared with what is known of its key; never null.
    """
    joined = join_state(latest, target, keys, "_target")
    known, left = order_of("_target"), F.col("_target._content_hash")
    if tombstones is not None:
        joined = join_state(joined, tombstones.select(*keys, *ORDER), keys, "_tombstone")
        known = F.greatest(known, order_of("_tombstone"))
        left = F.when(known == order_of("_tombstone"), DELETED).otherwise(left)
    mine = F.struct(*ORDER)
    exists, is_delete = F.col("_target").isNotNull(), F.col("_is_delete")
    same = (order_of("_target") == mine) & (F.col("_target._content_hash") == F.col("_content_hash"))
    is_late = known > mine if anew is None else ~anew & (known > mine)
    fate = (
        F.when(is_late, SUPERSEDED)
        .when(is_delete & ~exists, UNCHANGED)
        .when(is_delete, DELETE)
        .when(same, UNCHANGED)
        .when(exists, UPDATE)
        .otherwise(INSERT)
    )
    contends = (known["_sequence"] == F.col("_sequence")) & (left != left_behind())
    both_delivered = ~is_mended(F.greatest(known["_source_hash"], F.col("_source_hash")))
    tied = F.col(TIED) | F.coalesce(contends & both_delivered, F.lit(False))
    return joined.withColumns({"_fate": fate, TIED: tied}).select(*latest.columns, "_fate")


def with_snapshot_fate(snapshot: DataFrame, target: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Add `_fate` to the rows of a full snapshot, by content alone: a row that is the same stays as it is."""
    joined = join_state(snapshot, target, keys, "_target")
    same = F.col("_target._content_hash") == F.col("_content_hash")
    fate = F.when(F.col("_target").isNull(), INSERT).when(same, UNCHANGED).otherwise(UPDATE)
    return joined.withColumn("_fate", fate).select(*snapshot.columns, "_fate")


def absent_rows(delivered_keys: DataFrame, target: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Target keys that a full snapshot did not deliver, refused rows counted as delivered; `_fate` is `absent`."""
    return target.select(*keys).join(delivered_keys, list(keys), "left_anti").withColumn("_fate", F.lit(ABSENT))


def key_bounds(keys: Mapping[str, str], where: Column) -> list[Column]:
    """Aggregates `min_<key>` and `max_<key>` of the orderable keys, over the rows where `where` is true."""
    orderable = [name for name, kind in keys.items() if is_orderable(kind)]
    return [
        bound(F.when(where, F.col(name))).cast("string").alias(f"{label}_{name}")
        for name in orderable
        for label, bound in (("min", F.min), ("max", F.max))
    ]


def is_orderable(kind: str) -> bool:
    """Whether bounds of this type can be written as a literal that Delta prunes files by."""
    return kind in {"string", "tinyint", "smallint", "int", "bigint", "date", "timestamp"}


def within(keys: Mapping[str, str], bounds: Mapping[str, str | None]) -> Column:
    """Target rows that can match a batch with these key bounds."""
    parts = [F.expr(text) for text in bounds_sql(keys, bounds)]
    return reduce(and_, parts, F.lit(True))


def bounds_sql(keys: Mapping[str, str], bounds: Mapping[str, str | None], alias: str = "") -> list[str]:
    """`key BETWEEN literal AND literal`, one for each orderable key.

    >>> bounds_sql({"d": "date"}, {"min_d": "2013-01-01", "max_d": "2013-01-03"}, "t.")
    ["t.`d` BETWEEN DATE'2013-01-01' AND DATE'2013-01-03'"]
    """
    found = [(name, kind, bounds.get(f"min_{name}"), bounds.get(f"max_{name}")) for name, kind in keys.items()]
    return [
        f"{alias}`{name}` BETWEEN {_literal(low, kind)} AND {_literal(high, kind)}"
        for name, kind, low, high in found
        if low is not None and high is not None
    ]


def _literal(text: str, kind: str) -> str:
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    prefix = {"date": "DATE", "timestamp": "TIMESTAMP"}.get(kind, "")
    return f"{prefix}{quoted}" if kind in {"string", "date", "timestamp"} else text


def order_of(state: str) -> Column:
    """The order of a state that was joined under this name, null where there is none."""
    return F.when(F.col(state).isNotNull(), F.struct(*(F.col(f"{state}.{name}") for name in ORDER)))


def join_state(df: DataFrame, state: DataFrame, keys: Sequence[str], name: str) -> DataFrame:
    """Add what is known of each row's key as the struct `name`, null where nothing is."""
    known = F.struct(*(column for column in state.columns if column not in keys))
    return df.join(state.select(*keys, known.alias(name)), list(keys), "left")

"""Change data by key and sequence (SCD type 1): which rows change the target, and how.

The state of a key is its greatest event by (`_sequence`, `_content_hash`), whatever order the events arrive in: a row,
or for a delete nothing but a tombstone. Hence any order and repetition of batches ends in the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

ORDER = ("_sequence", "_content_hash")
"""What orders the events of one key; the content hash settles ties, the same way in every order of arrival."""

INSERT, UPDATE, DELETE, ABSENT = "insert", "update", "delete", "absent"
UNCHANGED, SUPERSEDED = "unchanged", "superseded"
CHANGES = (INSERT, UPDATE, DELETE, ABSENT)
"""The fates that change the target; `absent` is a target row that a full snapshot no longer has."""


def content_hash(columns: Sequence[str], is_delete: Column) -> Column:
    """A hash of a row's values; each column brings its nullness, or (null, 1) would hash like (1, null)."""
    parts = [part for name in columns for part in (F.col(name).isNull(), F.col(name))]
    return F.xxhash64(*parts, is_delete)


def latest_per_key(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The greatest event of each key, with all columns of `df`."""
    newest = F.max_by(F.struct(*df.columns), F.struct(*ORDER)).alias("_newest")
    return df.groupBy(*keys).agg(newest).select("_newest.*")


def with_fate(latest: DataFrame, target: DataFrame, tombstones: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """Add `_fate` to the latest event of each key.

    Args:
        latest: one row a key, with `_sequence`, `_content_hash` and `_is_delete`.
        target: the target's keys and their `_sequence` and `_content_hash`.
        tombstones: the same of deleted keys; None where the table has no deletes.
        keys: the key columns.
    """
    joined = _join_state(latest, target, keys, "_target")
    newest = F.col("_target")
    if tombstones is not None:
        joined = _join_state(joined, tombstones, keys, "_tombstone")
        newest = F.greatest("_target", "_tombstone")
    mine = F.struct(*(F.col(name) for name in ORDER))
    exists, is_delete = F.col("_target").isNotNull(), F.col("_is_delete")
    fate = (
        F.when(newest.isNotNull() & (newest > mine), SUPERSEDED)
        .when(newest.isNotNull() & (newest == mine), UNCHANGED)
        .when(is_delete & ~exists, UNCHANGED)
        .when(is_delete, DELETE)
        .when(exists, UPDATE)
        .otherwise(INSERT)
    )
    return joined.withColumn("_fate", fate).select(*latest.columns, "_fate")


def with_snapshot_fate(snapshot: DataFrame, target: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Add `_fate` to the rows of a full snapshot, by content alone: a row that is the same stays as it is."""
    joined = _join_state(snapshot, target, keys, "_target")
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


def _join_state(df: DataFrame, state: DataFrame, keys: Sequence[str], name: str) -> DataFrame:
    known = state.select(*keys, F.struct(*(F.col(column) for column in ORDER)).alias(name))
    return df.join(known, list(keys), "left")

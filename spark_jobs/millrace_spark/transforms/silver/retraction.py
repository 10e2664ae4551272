"""Rows that a source retracted: recompute the state of their keys from all rows that the source has now."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace_spark.transforms.refusals import is_accepted

RECOMPUTED = "_recomputed"
"""True for a row whose key is computed as if it were new; null or missing for any other row."""


def with_recomputed_keys(new: DataFrame, current: DataFrame, retracted: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows of a batch when rows of some keys were removed from the source.

    Args:
        new: rows with refusals that came since the last batch.
        current: rows with refusals of all that the source has now, including the new rows.
        retracted: the keys of the removed rows, one row per key.
        keys: the key columns.

    Returns:
        The new rows; for a retracted key instead every accepted row of the source, once. With `_recomputed`.
    """
    marked = retracted.select(*keys, F.lit(True).alias(RECOMPUTED))
    of_other_keys = new.join(marked, list(keys), "left").where(~is_accepted() | F.col(RECOMPUTED).isNull())
    return of_other_keys.unionByName(current.where(is_accepted()).join(marked, list(keys)))


def tombstone_changes(deletes: DataFrame, retracted: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """Return the changes of the tombstones of deleted and of retracted keys.

    Args:
        deletes: the latest delete of each key, in the columns of the tombstones.
        retracted: the keys whose earlier events do not count any more; None for no such keys.
        keys: the key columns.

    Returns:
        The deletes, with `_replaces`: true if the delete replaces any earlier tombstone of the key. A retracted key
        without a delete has nulls: its tombstone is removed.
    """
    if retracted is None:
        return deletes.withColumn("_replaces", F.lit(False))
    marked = retracted.select(*keys, F.lit(True).alias(RECOMPUTED))
    remembered = deletes.join(marked, list(keys), "left").withColumn("_replaces", F.coalesce(RECOMPUTED, F.lit(False)))
    forgotten = marked.join(deletes, list(keys), "left_anti").withColumn("_replaces", F.lit(True))
    return remembered.drop(RECOMPUTED).unionByName(forgotten.drop(RECOMPUTED), allowMissingColumns=True)

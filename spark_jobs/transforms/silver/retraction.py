"""Rows that a source has taken back: the state of their keys is worked out again from all that the source holds."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.transforms.judgement import accepted

RECOMPUTED = "_recomputed"
"""True for a row whose key counts as never seen before; null or missing for any other."""


def recomputed(new: DataFrame, held: DataFrame, retracted: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows of a batch when rows of some keys were taken out of the source.

    Args:
        new: judged rows that came since the last batch.
        held: judged rows of all that the source holds now, the new ones included.
        retracted: the keys of the rows that were taken out, one row a key.
        keys: the key columns.

    Returns:
        The new rows, but of a retracted key every accepted row that the source holds, each once; with `_recomputed`.
    """
    marked = retracted.select(*keys, F.lit(True).alias(RECOMPUTED))
    of_other_keys = new.join(marked, list(keys), "left").where(~accepted() | F.col(RECOMPUTED).isNull())
    return of_other_keys.unionByName(held.where(accepted()).join(marked, list(keys)))


def tombstone_changes(deletes: DataFrame, retracted: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """What becomes of the tombstones of deleted and of retracted keys.

    Args:
        deletes: the latest delete of each key, in the columns of the tombstones.
        retracted: the keys whose earlier events do not count any more; None where there are none.
        keys: the key columns.

    Returns:
        The deletes, with `_anew`: whether they stand whatever was known of the key. A retracted key without a delete
        comes with nulls: its tombstone goes.
    """
    if retracted is None:
        return deletes.withColumn("_anew", F.lit(False))
    marked = retracted.select(*keys, F.lit(True).alias(RECOMPUTED))
    stated = deletes.join(marked, list(keys), "left").withColumn("_anew", F.coalesce(RECOMPUTED, F.lit(False)))
    forgotten = marked.join(deletes, list(keys), "left_anti").withColumn("_anew", F.lit(True))
    return stated.drop(RECOMPUTED).unionByName(forgotten.drop(RECOMPUTED), allowMissingColumns=True)

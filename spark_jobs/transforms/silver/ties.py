"""Ties: events of one key that share a sequence and leave different states behind.

Which one counts is settled by the hash of the event as received, and so the same in any order. That is a rule, not the
truth: a person should know of it. Events that differ in what the table does not store do not tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

TIED = "_tied"
"""True for a state of a key that another event with its sequence contends for; null where nothing is known of it."""

GREATEST_HASH, MENDED_HASHES = 2**63 - 1, 2**32
"""Somebody has mended a row whose hash is one of the greatest ones: that it wins is no tie, it is what was wanted."""

DELETED = 0
"""What stands for the state that a delete leaves behind."""


def left_behind() -> Column:
    """What stands for the state that an event leaves behind: the hash of its content, or `DELETED`."""
    return F.when(F.col("_is_delete"), F.lit(DELETED).cast("bigint")).otherwise(F.col("_content_hash"))


def is_mended(source_hash: Column) -> Column:
    """Whether somebody has mended the row with this hash."""
    return source_hash > GREATEST_HASH - MENDED_HASHES


def differ_at_the_newest() -> Column:
    """Of one key's events: whether those with the greatest sequence leave different states behind."""
    state, against = left_behind(), F.bitwise_not(left_behind())
    greatest, least = (F.max_by(state, F.struct("_sequence", order)) for order in (state, against))
    return greatest != least


def tied_keys(states: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The tied keys: one row a key, which `said` names in words.

    Args:
        states: rows with `keys`, `_sequence` and `_tied`.
        keys: the key columns.
    """
    has_key = reduce(or_, (F.col(key).isNotNull() for key in keys))  # a truncate has none
    tied = states.where(F.col(TIED) & has_key).groupBy(*keys).agg(F.max("_sequence").alias("_sequence"))
    return tied.select(F.concat(key_in_words(keys), F.lit(" at "), F.to_json("_sequence")).alias("said"))


def key_in_words(keys: Sequence[str]) -> Column:
    """A row's key as a person reads it: `key=value`, one for each part."""
    return F.concat_ws(", ", *(F.concat(F.lit(f"{key}="), F.col(key).cast("string")) for key in keys))

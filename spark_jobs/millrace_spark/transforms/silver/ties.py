"""Ties: events of one key that have the same sequence, but after which the key has different states.

The hash of the event as received decides which event counts, so the result is the same in any order. The choice is
arbitrary, so a person should know of it. Events that differ only in what the table does not store do not tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.restricted import NOTHING_RESTRICTED, RESTRICTED, RestrictedColumns

TIED = "_tied"
"""True for a state whose key has another event with the same sequence and another state; null where not known."""

GREATEST_HASH, FIXED_HASHES = 2**63 - 1, 2**32
"""The greatest hashes belong to rows that a person fixed: such a row wins on purpose, which is not a tie."""

DELETED = 0
"""The number for the state of a key after its delete."""


def state_hash() -> Column:
    """Return a number for the state of the key after an event: the hash of its content, or `DELETED`."""
    return F.when(F.col("_is_delete"), F.lit(DELETED).cast("bigint")).otherwise(F.col("_content_hash"))


def is_fixed(source_hash: Column) -> Column:
    """Return true for the hash of a row that a person fixed."""
    return source_hash > GREATEST_HASH - FIXED_HASHES


def newest_states_differ() -> Column:
    """Return an aggregate over a key's events: true if the events of the greatest sequence give different states."""
    state, descending = state_hash(), F.bitwise_not(state_hash())
    greatest, least = (F.max_by(state, F.struct("_sequence", order)) for order in (state, descending))
    return greatest != least


def tied_keys(states: DataFrame, keys: Sequence[str], restricted: RestrictedColumns = NOTHING_RESTRICTED) -> DataFrame:
    """Return the tied keys, one row per key, with `description`: the key and its sequence as a person reads them.

    Args:
        states: rows with `keys`, `_sequence` and `_tied`.
        keys: the key columns.
        restricted: the columns whose values are not shown.
    """
    has_key = reduce(or_, (F.col(key).isNotNull() for key in keys))  # a truncate has none
    tied = states.where(F.col(TIED) & has_key).groupBy(*keys).agg(F.max("_sequence").alias("_sequence"))
    fields = states.select("_sequence.*").columns
    parts = [F.lit(RESTRICTED) if name in restricted else F.col(f"_sequence.{name}") for name in fields]
    sequence = F.to_json(F.struct(*(part.alias(name) for part, name in zip(parts, fields, strict=True))))
    return tied.select(F.concat(key_in_words(keys, restricted), F.lit(" at "), sequence).alias("description"))


def key_in_words(keys: Sequence[str], restricted: RestrictedColumns = NOTHING_RESTRICTED) -> Column:
    """Return a row's key as a person reads it: `key=value` for each part, without values of restricted columns."""
    values = {key: F.lit(RESTRICTED) if key in restricted else F.col(key).cast("string") for key in keys}
    return F.concat_ws(", ", *(F.concat(F.lit(f"{key}="), value) for key, value in values.items()))

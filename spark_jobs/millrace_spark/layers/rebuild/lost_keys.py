"""The keys of the silver table in use that its rebuilt table lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace.contracts.counted import counted
from millrace.contracts.restricted import NOTHING_RESTRICTED, RestrictedColumns
from millrace_spark.transforms.silver.ties import key_in_words
from millrace_spark.transforms.silver.timeline import END_AT

_SAMPLES = 3


@dataclass(frozen=True)
class LostKeys:
    """The keys of the table in use that the rebuilt table lacks.

    Attributes:
        keys: the number of keys that are missing.
        of_keys: the number of keys of the table in use.
        samples: some of the missing keys, as `key=value`.
    """

    keys: int
    of_keys: int
    samples: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the numbers as a sentence.

        >>> str(LostKeys(3, 4, ("id=1",)))
        '3 of 4 keys (75 %) are missing in the rebuilt table, such as id=1'
        """
        samples = f", such as {', '.join(self.samples)}" if self.samples else ""
        percent = 100 * self.keys / max(self.of_keys, 1)
        number = f"{self.keys:,} of {counted(self.of_keys, 'key')} ({percent:.0f} %)"
        return f"{number} {'is' if self.keys == 1 else 'are'} missing in the rebuilt table{samples}"


def lost_keys(
    in_use: DataFrame, built: DataFrame, keys: Sequence[str], restricted: RestrictedColumns = NOTHING_RESTRICTED
) -> LostKeys:
    """Return the keys of the table in use that the rebuilt table lacks.

    In tables with history, a key is also lost if only the rebuilt table has closed it. Values are compared in the types
    of the rebuilt table. Key columns that the table in use does not have are ignored; if it has none of the key
    columns, each of its rows counts as a lost key.

    Args:
        in_use: the rows of the table in use.
        built: the rows of the rebuilt table.
        keys: the key columns of the rebuilt table.
        restricted: the columns whose values are not shown.
    """
    shared = [key for key in keys if key in in_use.columns]
    if not shared:
        rows = in_use.count()
        return LostKeys(rows, rows)
    has_history = END_AT in in_use.columns and END_AT in built.columns
    before = _by_key(in_use, shared, has_history, alive="_was_alive")
    after = _by_key(built, shared, has_history, alive="_is_alive")
    types, new_names = dict(built.dtypes), {key: f"_built_{place}" for place, key in enumerate(shared)}
    is_same_key = [F.col(key).try_cast(types[key]) == F.col(new) for key, new in new_names.items()]
    joined = before.join(after.withColumnsRenamed(new_names), is_same_key, "left")
    is_lost = F.col("_is_alive").isNull() | (F.col("_was_alive") & ~F.col("_is_alive"))
    ((of_keys, count),) = joined.agg(F.count(F.lit(1)), F.count_if(is_lost)).collect()
    if not count:
        return LostKeys(0, of_keys)
    samples = joined.where(is_lost).select(key_in_words(shared, restricted).alias("key")).limit(_SAMPLES).collect()
    return LostKeys(count, of_keys, tuple(row["key"] for row in samples))


def _by_key(rows: DataFrame, keys: Sequence[str], has_history: bool, *, alive: str) -> DataFrame:
    """Return one row for each key; the column `alive` is false for a deleted key, which only history keeps."""
    is_alive = F.col(END_AT).isNull() if END_AT in rows.columns else F.lit(True)
    relevant = rows if has_history else rows.where(is_alive)
    return relevant.groupBy(*keys).agg(F.max(is_alive).alias(alive))

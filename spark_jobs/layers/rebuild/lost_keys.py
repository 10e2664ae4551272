"""Which keys of a silver table in use are missing in the table that was built anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.transforms.silver.ties import key_in_words
from spark_jobs.transforms.silver.timeline import END_AT

_SAMPLES = 3


@dataclass(frozen=True)
class LostKeys:
    """Keys of a table in use that the built one lacks.

    Attributes:
        keys: how many.
        of_keys: of how many.
        samples: some of them, as `key=value`.
    """

    keys: int
    of_keys: int
    samples: tuple[str, ...] = ()

    def __str__(self) -> str:
        """How many are missing.

        >>> str(LostKeys(3, 4, ("id=1",)))
        '3 of 4 keys (75 %) are missing in what was built, such as id=1'
        """
        such = f", such as {', '.join(self.samples)}" if self.samples else ""
        percent = 100 * self.keys / max(self.of_keys, 1)
        return f"{self.keys:,} of {self.of_keys:,} keys ({percent:.0f} %) are missing in what was built{such}"


def lost_keys(in_use: DataFrame, built: DataFrame, keys: Sequence[str]) -> LostKeys:
    """The keys of the table in use that the built one lacks; of tables with history also those that only it closes.

    Values are compared in the types of the built table. Of a key with a column that the table in use does not have, the
    other columns are compared; where it has none of them, each of its rows counts as a missing key.

    Args:
        in_use: the rows that readers have.
        built: the rows that are to take their place.
        keys: the key columns of the built table.
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
    ((of_keys, lost),) = joined.agg(F.count(F.lit(1)), F.count_if(is_lost)).collect()
    if not lost:
        return LostKeys(0, of_keys)
    samples = joined.where(is_lost).select(key_in_words(shared).alias("said")).limit(_SAMPLES).collect()
    return LostKeys(lost, of_keys, tuple(row["said"] for row in samples))


def _by_key(rows: DataFrame, keys: Sequence[str], has_history: bool, *, alive: str) -> DataFrame:
    """A row a key, with `alive`: whether it is not deleted; without history only the keys that are alive."""
    is_alive = F.col(END_AT).isNull() if END_AT in rows.columns else F.lit(True)
    kept = rows if has_history else rows.where(is_alive)
    return kept.groupBy(*keys).agg(F.max(is_alive).alias(alive))

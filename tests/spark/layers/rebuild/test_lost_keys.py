"""The keys that a rebuild would lose: keys are compared, not counts."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from millrace_spark.layers.rebuild.staged_builds import LostKeys, lost_keys

HISTORY = "id INT, __START_AT INT, __END_AT INT"
CASES = {
    "another type": ("id STRING", [("01",), ("2",), ("x",)], "id INT", [(1,), (2,)], 1, 3),
    "a further key column": ("id INT", [(1,), (2,)], "id INT, line INT", [(1, 1), (1, 2)], 1, 2),
    "other key columns": ("a INT", [(1,), (2,)], "id INT", [(1,), (2,)], 2, 2),
    "one key column less": ("id INT, line INT", [(1, 1), (1, 2)], "id INT", [(1,)], 0, 1),
    "a closed key, and one that was closed before": (
        HISTORY,
        [(1, 1, None), (2, 1, 2), (2, 2, None), (3, 1, 2)],
        HISTORY,
        [(1, 1, None), (2, 1, 3), (3, 1, 2)],
        1,
        3,
    ),
    "history that is not kept any more": (HISTORY, [(1, 1, None), (2, 1, 2)], "id INT", [(1,)], 0, 1),
}


@pytest.mark.parametrize(("before", "rows", "after", "built", "keys", "of_keys"), CASES.values(), ids=CASES)
def test_missing_keys_are_counted_whatever_keys_replace_them(
    spark: SparkSession, before: str, rows: list[Any], after: str, built: list[Any], keys: int, of_keys: int
) -> None:
    names = [column.split()[0] for column in after.split(", ") if not column.startswith("__")]
    lost = lost_keys(spark.createDataFrame(rows, before), spark.createDataFrame(built, after), names)
    assert (lost.keys, lost.of_keys) == (keys, of_keys)


def test_as_many_other_keys_replace_none_and_the_result_has_samples_of_the_missing_ones(spark: SparkSession) -> None:
    frames = [spark.createDataFrame([(key,) for key in keys], "id INT") for keys in ((1, 2, 3), (3, 4, 5))]
    lost = lost_keys(*frames, ["id"])
    assert (lost.keys, lost.of_keys, set(lost.samples)) == (2, 3, {"id=1", "id=2"})
    assert lost_keys(frames[0], frames[0], ["id"]) == LostKeys(0, 3)

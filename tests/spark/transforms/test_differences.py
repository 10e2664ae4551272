"""Two sets of groups are compared as plain loops would: null and NaN are values, sums may differ a little."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_jobs.transforms.differences import compare_groups
from tests.support.examples import few_or_many, settings_for

SCHEMA = "day int, kind string, total double, amount int"
NUMBERS = [None, 0.0, -0.0, 1.0, 1.0 + 1e-12, 1.1, 1e12, 1e12 + 1, 1e12 + 1e5, math.nan, math.inf, -math.inf, 1e-300]
Row = tuple[int | None, str | None, float | None, int | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 1]), st.sampled_from([None, "a"]), st.sampled_from(NUMBERS), st.sampled_from([None, 1])
    ),
    max_size=4,
)


def is_same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or (math.isfinite(one - other) and abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1))


def expected(stored: list[Row], computed: list[Row]) -> dict[tuple[object, ...], bool]:
    """Return group -> whether it differs; `computed` has each group once."""
    by_group = {row[:2]: row[2:] for row in computed}
    counts = Counter(row[:2] for row in stored)
    found = {key: True for key in {*by_group, *counts}}
    for *key, total, amount in stored:
        other = by_group.get(tuple(key))
        if other and counts[tuple(key)] == 1:
            found[tuple(key)] = not (is_same(total, other[0]) and amount == other[1])
    return found


@few_or_many(8, 60)
def test_groups_differ_where_a_loop_over_them_finds_it(spark: SparkSession, examples: int) -> None:
    seen = Counter[bool]()

    @settings_for(examples)
    @given(stored=ROWS, computed=ROWS)
    def holds(stored: list[Row], computed: list[Row]) -> None:
        once = list({row[:2]: row for row in [*computed, *stored[:2]]}.values())
        frames = [spark.createDataFrame(rows, SCHEMA) for rows in (stored, once)]
        rows = compare_groups(*frames, ["day", "kind"], ["total", "amount"]).collect()
        found = {(row["day"], row["kind"]): row["_is_different"] for row in rows}
        assert found == expected(stored, once)
        assert len(found) == len(rows)
        seen.update(found.values())

    holds()
    assert seen[True], "some groups differ"
    assert seen[False], "some groups do not"

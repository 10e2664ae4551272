"""Two sets of groups are compared as plain loops would: null and NaN are values, sums may differ a little."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace_spark.transforms.differences import as_groups, compare_groups
from tests.support.examples import few_or_many, many, settings_for

SCHEMA = "day int, kind string, total double, amount int"
NUMBERS = [None, 0.0, -0.0, 1.0, 1.0 + 1e-12, 1.1, 1e12, 1e12 + 1, 1e12 + 1e5, math.nan, math.inf, -math.inf, 1e-300]
GROUPS = ["table", "day", "kind"]
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


@few_or_many(1, 20)
def test_groups_differ_where_a_loop_over_them_finds_it(spark: SparkSession, examples: int) -> None:
    @settings_for(examples)
    @given(many(st.tuples(ROWS, ROWS)))
    def holds(tables: list[tuple[list[Row], list[Row]]]) -> None:
        pairs = [
            (stored, list({row[:2]: row for row in [*computed, *stored[:2]]}.values())) for stored, computed in tables
        ]
        frames = [numbered(spark, side) for side in zip(*pairs, strict=True)]
        require_differences(compare_groups(*frames, GROUPS, ["total", "amount"]), [expected(*pair) for pair in pairs])

    holds()


def numbered(spark: SparkSession, tables: Sequence[list[Row]]) -> DataFrame:
    """Return the rows of all tables, with the number of their table."""
    rows = [(number, *row) for number, table in enumerate(tables) for row in table]
    return spark.createDataFrame(rows, f"table int, {SCHEMA}")


def require_differences(compared: DataFrame, expected: list[dict[tuple[object, ...], bool]]) -> None:
    rows = compared.collect()
    found = {(row["table"], row["day"], row["kind"]): row["_is_different"] for row in rows}
    assert len(found) == len(rows)
    assert found == {(number, *key): is_so for number, groups in enumerate(expected) for key, is_so in groups.items()}
    assert {*found.values()} == {True, False}, "some groups differ, and some do not"


def nested(rows: DataFrame) -> DataFrame:
    """Put the numbers into a map of lists, whose entries have the other order in half of the rows."""
    parts = [F.create_map(F.lit("x"), F.array("total"), F.lit("y"), F.array(F.lit(1.5))),
             F.create_map(F.lit("y"), F.array(F.lit(1.5)), F.lit("x"), F.array("total"))]  # fmt: skip
    return rows.withColumn("total", F.when(F.rand(7) < 0.5, parts[0]).otherwise(parts[1]))


def sorted_values(rows: list[Row], key: tuple[object, ...], place: int) -> list[float | None]:
    values = [row[place] for row in rows if row[:2] == key]
    return sorted(values, key=lambda value: (value is None, value is not None and math.isnan(value), value or 0.0))


@few_or_many(1, 20)
def test_rows_without_a_key_differ_where_the_sorted_values_of_equal_rows_do(spark: SparkSession, examples: int) -> None:
    changed = st.tuples(ROWS, st.dictionaries(st.integers(0, 3), st.sampled_from(NUMBERS), max_size=1))

    @settings_for(examples)
    @given(many(changed))
    def holds(tables: list[tuple[list[Row], dict[int, float | None]]]) -> None:
        pairs = [
            (stored, [(*row[:2], changes.get(at, row[2]), row[3]) for at, row in enumerate(stored)][::-1])
            for stored, changes in tables
        ]
        frames = [nested(numbered(spark, side)) for side in zip(*pairs, strict=True)]
        grouped = [as_groups(rows, GROUPS, ["total", "amount"]) for rows in frames]
        differs = [
            {
                key: not all(map(is_same, sorted_values(stored, key, 2), sorted_values(computed, key, 2)))
                for key in {row[:2] for row in stored}
            }
            for stored, computed in pairs
        ]
        require_differences(compare_groups(*grouped, GROUPS, ["total", "amount"]), differs)

    holds()

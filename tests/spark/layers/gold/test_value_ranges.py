"""The ranges in place of a long list contain all values of it, whatever the sample, and are few and exact."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millrace_spark.layers.gold.choice import have_ranges, ranges_of
from millrace_spark.transforms.touched_rows import gives_touched, is_touched
from millrace_spark.transforms.touched_spans import MAX_SPANS, TouchedSpans, spans_of
from tests.support.examples import few_or_many, settings_for

EXPRESSIONS = {
    "smallint": ("CAST(id % 300 AS SMALLINT)", "n"),
    "int": ("CAST(id * id % 9001 - 70 AS INT)", "n"),
    "bigint": ("CASE id WHEN 0 THEN -9223372036854775807L - 1 WHEN 1 THEN 9223372036854775807L ELSE id END", "n"),
    "date": ("date_add(DATE'1969-12-01', CAST(id AS INT))", "trunc(n, 'MM')"),
    "timestamp": ("timestamp_micros(id * 1800000001)", "date_trunc('hour', n)"),
}
"""Type of the values -> the column `n` of some rows, and the value of each."""


@pytest.mark.parametrize("kind", EXPRESSIONS)
@few_or_many(1, 30)
def test_each_touched_value_is_in_a_range_and_each_range_ends_with_one(
    spark: SparkSession, kind: str, examples: int
) -> None:
    column, expression = EXPRESSIONS[kind]

    @settings_for(examples)
    @given(seed=st.integers(0, 2**32))
    def holds(seed: int) -> None:
        random = Random(seed)
        end = random.choice((3, 200, 2_000))
        rows = spark.range(end).selectExpr(f"{column} AS n").union(spark.sql("SELECT NULL AS n"))
        first, last = sorted(random.choices(range(-1, end), k=2))
        is_changed = f"(id BETWEEN {first} AND {last} OR id % {random.choice((7, 10**6))} = 3)"
        changed = spark.range(end).where(is_changed).selectExpr(f"{column} AS n")
        if has_null := random.random() < 0.5:
            changed = changed.union(spark.sql("SELECT NULL AS n"))
        touched = changed.selectExpr(f"CAST({expression} AS STRING) AS touched")
        texts = [row["touched"] for row in touched.collect()]
        ranges = ranges_of(touched, kind, random.sample(texts, min(len(texts), random.randint(1, 9))))
        assert ranges is not None
        assert len(ranges.ends) <= MAX_SPANS
        assert {end for ends in ranges.ends for end in ends} <= {*texts}
        assert ranges.has_null == has_null
        spans = spans_of(ranges, kind, timedelta())
        assert isinstance(spans, TouchedSpans)
        valued = rows.withColumn("value", F.expr(expression))
        is_found = [is_touched("value", spans), gives_touched(expression, rows, spans)]
        for text, *found in valued.select(F.expr("CAST(value AS STRING)"), *is_found).collect():
            assert text not in texts or found == [True, True]
            assert text is not None or has_null or True not in found

    holds()


def test_an_early_value_beside_many_late_ones_does_not_widen_their_range(spark: SparkSession) -> None:
    touched = spark.sql("SELECT CAST(id AS STRING) AS touched FROM range(9000, 9100) UNION ALL SELECT '5'")
    ranges = ranges_of(touched, "int", ["5", "9050"])
    assert ranges is not None
    assert ranges.ends == [("5", "5"), ("9000", "9099")]


def test_values_without_a_known_place_have_no_ranges(spark: SparkSession) -> None:
    touched = spark.sql("SELECT * FROM VALUES ('5'), ('99999999999') AS t(touched)")
    assert ranges_of(touched, "int", ["5"]) is None
    assert ranges_of(touched, "date", ["+10000-01-01"]) is None
    assert have_ranges("bigint", ["int", "smallint"])
    assert not have_ranges("date", ["timestamp"]), "a text of a time is not that of a date"
    assert not have_ranges("string", ["string"])
    assert not have_ranges("int", ["string"])


def test_ranges_of_years_choose_the_dates_of_these_years(spark: SparkSession) -> None:
    rows = spark.sql("SELECT date_add(DATE'2010-01-01', 100 * CAST(id AS INT)) AS day FROM range(30)")
    touched = spark.sql("SELECT * FROM VALUES ('2012'), ('2013') AS t(touched)")
    for kind in ("int", "bigint"):
        ranges = ranges_of(touched, kind, ["2012"])
        assert ranges is not None
        spans = spans_of(ranges, kind, timedelta())
        assert spans is not None
        found = {row["day"].year for row in rows.where(gives_touched("year(day)", rows, spans)).collect()}
        assert found == {2012, 2013}

"""The spans of values that a batch computes because of its lookback, and the rows that it reads for them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.duration import UNBOUNDED
from millrace_spark.transforms.touched_rows import gives_touched, is_touched
from millrace_spark.transforms.touched_spans import MAX_SPANS, TouchedSpans, spans_of
from tests.support.examples import few_or_many, settings_for

WEEK = timedelta(days=7)
GRAINS = {
    "date": ("to_date(at)", "trunc(at, 'MM')"),
    "timestamp": ("at", "date_trunc('week', at)", "date_trunc('hour', at)"),
}


@pytest.mark.parametrize("kind", ["date", "timestamp"])
@few_or_many(2, 40)
def test_each_value_after_a_touched_one_is_computed_and_each_row_before_it_is_read(
    spark: SparkSession, kind: str, examples: int
) -> None:
    @settings_for(examples)
    @given(seed=st.integers(0, 2**32), expression=st.sampled_from(GRAINS[kind]))
    def holds(seed: int, expression: str) -> None:
        random, reach = Random(seed), timedelta(hours=24 * (seed % 9) + (seed % 30) * (kind == "timestamp"))
        times = [datetime(2012, 12, 20, tzinfo=UTC) + timedelta(hours=random.randrange(24 * 90)) for _ in range(60)]
        rows = spark.createDataFrame([(None,), *((time,) for time in times)], "at timestamp")
        rows = rows.withColumn("value", F.expr(expression).cast(kind))
        values = {
            row["value"]: row["text"]
            for row in rows.select("value", F.col("value").cast("string").alias("text")).collect()
        }
        touched = random.sample(list(values), 3)
        spans = spans_of([values[value] for value in touched], kind, reach)
        assert isinstance(spans, TouchedSpans)
        found = rows.select("value", is_touched("value", spans), gives_touched(expression, rows, spans)).collect()
        computed = {value for value, is_computed, _ in found if is_computed}
        expected = {v for v in values for d in touched if v == d or (v and d and d <= v <= d + reach)}
        assert computed == expected
        read = {value for value, _, is_read in found if is_read}
        needed = {v for v in values for c in computed if v == c or (v and c and c - reach <= v <= c)}
        assert needed <= read, "the rows on which they depend are read"

    holds()


def test_overlapping_spans_are_one_and_too_many_are_one() -> None:
    spans = spans_of(["2013-01-01", "2013-01-05", "2013-02-01"], "date", WEEK)
    assert spans == TouchedSpans(
        computed=(("DATE'2013-01-01'", "DATE'2013-01-12'"), ("DATE'2013-02-01'", "DATE'2013-02-08'")),
        read=(("DATE'2012-12-25'", "DATE'2013-01-12'"), ("DATE'2013-01-25'", "DATE'2013-02-08'")),
        has_null=False,
    )
    months = [str(date(2000 + month // 12, month % 12 + 1, 1)) for month in range(MAX_SPANS + 1)]
    many = spans_of([None, *months], "date", WEEK)
    assert many == TouchedSpans(
        (("DATE'2000-01-01'", "DATE'2004-03-08'"),), (("DATE'1999-12-25'", "DATE'2004-03-08'"),), True
    )


def test_a_running_total_is_computed_from_the_least_value_in_the_order_of_its_type() -> None:
    def first(kind: str, *texts: str | None) -> object:
        spans = spans_of(texts, kind, UNBOUNDED)
        return spans and (spans.computed, spans.read, spans.has_null)

    assert first("int", "10", "9") == ((("9", None),), None, True)
    assert first("date", "2013-01-02", "2013-01-01") == ((("DATE'2013-01-01'", None),), None, True)
    assert first("int", "1", None) is None, "rows without a value may come before all others"
    assert first("double", "1.0") is None
    assert first("date", "+10000-01-01") is None


def test_a_text_is_the_same_text_in_the_condition(spark: SparkSession) -> None:
    texts = ["it's", "a\\b", "ü", "Z", ""]
    rows = spark.createDataFrame([(text,) for text in texts], "value string")
    for text in texts:
        spans = spans_of([text], "string", UNBOUNDED)
        assert spans is not None
        later = {row["value"] for row in rows.where(is_touched("value", spans)).collect()}
        assert later == {other for other in texts if other.encode() >= text.encode()}


def test_times_that_cannot_be_counted_touch_everything() -> None:
    assert spans_of(["x"], "string", WEEK) is None
    assert spans_of(["+10000-01-01"], "date", WEEK) is None
    assert spans_of(["9999-12-31"], "date", WEEK) is None
    assert spans_of(["0001-01-01"], "date", WEEK) is None

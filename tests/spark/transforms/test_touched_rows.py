"""The condition that Delta can check against statistics never drops a row, and drops the files without touched rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace_spark.transforms import touched_rows
from millrace_spark.transforms.touched_rows import gives_touched, range_of, value_text
from tests.support.examples import few_or_many, settings_for

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
WINDOWS = [
    "window(at, '6 hours').start",
    "window(at, '1 day')['start']",
    "window(At, '7 minutes').start",
    "window(at, '2 weeks').start",
]
"""Spark accepts one such expression in a query."""

OTHERS = [
    "last_day(at)", "to_date(at)", "cast(at as date)", "year(at)", "trunc(at, 'MM')",
    "to_date(date_trunc('week', `At`))",
    "to_date(from_utc_timestamp(at, 'America/New_York'))", "year(to_utc_timestamp(at, 'Pacific/Apia'))",
    *(f"date_trunc('{unit}', at)" for unit in UNITS),
]  # fmt: skip
EDGES = [
    datetime.fromisoformat(f"{day}T00:00:00+00:00")
    for day in (
        "0001-01-01", "1582-10-04", "1582-10-15", "1899-12-31", "1969-12-31", "1970-01-01", "2000-02-29",
        "2012-02-29", "2012-12-31", "2013-01-01", "2013-03-10", "2100-03-01", "9998-12-31",
    )
]  # fmt: skip
OFFSETS = [timedelta(microseconds=-1), timedelta(), timedelta(microseconds=1), timedelta(hours=23, minutes=59)]


def times(random: Random) -> list[tuple[datetime | None]]:
    edges = random.sample(EDGES, 6)
    return [(None,), *((edge + random.choice(OFFSETS[edge.year == 1 :]),) for edge in edges for _ in range(3))]


def judge(rows: DataFrame, expression: str, touched: list[str | None]) -> Column:
    condition = range_of(expression, rows, touched)
    assert condition is not None, "a range is known"
    is_touched, is_read = F.expr(value_text(expression, {}, touched)), gives_touched(expression, rows, touched)
    return F.struct(is_touched.alias("is_touched"), condition.alias("is_in_range"), is_read.alias("is_read"))


@pytest.mark.parametrize("kind", ["timestamp", "date"])
@few_or_many(2, 20)
def test_each_row_with_a_touched_value_is_in_the_range(spark: SparkSession, kind: str, examples: int) -> None:
    @settings_for(examples)
    @given(seed=st.integers(0, 2**32), window=st.sampled_from(WINDOWS))
    def holds(seed: int, window: str) -> None:
        random = Random(seed)
        rows = spark.createDataFrame(times(random), "at timestamp").select(F.col("at").cast(kind).alias("at"))
        for expressions in ([window], OTHERS):
            values = rows.select(*(F.expr(expression).cast("string") for expression in expressions)).collect()
            texts = [list({row[place] for row in values}) for place in range(len(expressions))]
            touched = [random.sample(of_one, random.randint(1, len(of_one))) for of_one in texts]
            judged = [judge(rows, *each) for each in zip(expressions, touched, strict=True)]
            for place, found in enumerate(zip(*rows.select(*judged).collect(), strict=True)):
                assert any(each.is_touched for each in found), expressions[place]
                assert all(each.is_in_range for each in found if each.is_touched), expressions[place]
                assert all(bool(each.is_read) is bool(each.is_touched) for each in found), expressions[place]

    holds()


def test_more_values_than_ranges_share_ranges_that_end_at_the_widest_gaps(spark: SparkSession) -> None:
    rows = spark.range(400).select(F.expr("timestamp'1969-11-01' + make_interval(0, 0, 0, int(id))").alias("at"))
    first = datetime(1969, 11, 1, tzinfo=UTC)
    days = [f"{first + timedelta(days=number):%Y-%m-%d}" for number in (*range(10, 60), 90, 200)]
    condition = range_of("to_date(at)", rows, days)
    assert condition is not None
    kept = {f"{row['at']:%Y-%m-%d}" for row in rows.where(condition).collect()}
    assert kept == set(days), "no range reaches over the days in between"
    assert rows.where(gives_touched("to_date(at)", rows, days)).count() == len(days)


PLAIN = {
    "date": ["0001-01-01", "1582-10-04", "1969-12-31", "1970-01-01", "2013-01-04", "9999-12-31"],
    "timestamp": ["0001-01-01 00:00:00", "1970-01-01 00:00:00.5", "1970-01-01 00:00:00", "2013-01-04 23:59:59.999999"],
    "int": ["-2147483648", "-10", "-9", "0", "5", "10", "2147483647"],
    "bigint": ["-9223372036854775808", "-1", "100", "20", "9223372036854775807"],
    "string": ["", "'", "\\", "a", "a b", "A", "\u00e9", "\U0001f600", "10", "9"],
    "decimal(10,2)": ["-0.01", "0.00", "10.00", "9.00"],
    "double": ["NaN", "-Infinity", "1.0", "10.0"],
    "boolean": ["true", "false"],
}


@few_or_many(5, 50)
def test_the_ranges_of_a_column_leave_out_no_touched_value_of_any_type(
    spark: SparkSession, examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {kind: [None, *values] for kind, values in PLAIN.items()}
    columns = {kind: f"v{place}" for place, kind in enumerate(PLAIN)}
    rows = spark.createDataFrame([(kind, text) for kind in texts for text in texts[kind]], "kind string, text string")
    typed = rows.withColumns(
        {name: F.when(F.col("kind") == kind, F.col("text")).cast(kind) for kind, name in columns.items()}
    )
    some = st.fixed_dictionaries(
        {kind: st.lists(st.sampled_from(values), unique=True, min_size=1) for kind, values in texts.items()}
    )

    @settings_for(examples)
    @given(touched=some, ranges=st.integers(1, 4))
    def holds(touched: dict[str, list[str | None]], ranges: int) -> None:
        monkeypatch.setattr(touched_rows, "MAX_RANGES", ranges)
        conditions = {kind: gives_touched(name, typed, touched[kind]) for kind, name in columns.items()}
        is_found = reduce(or_, ((F.col("kind") == kind) & condition for kind, condition in conditions.items()))
        found = typed.where(is_found).select("kind", "text").collect()
        assert {tuple(row) for row in found} == {(kind, text) for kind in touched for text in touched[kind]}

    holds()


WITHOUT_RANGE = [
    "at", "`at`", "month(at)", "to_date(text)", "to_date(at, 'y')", "date_trunc('millisecond', at)",
    "window(at, '1 hour').end", "window(at, '1 hour', '30 minutes').start", "window(at, '1 hour 30 minutes').start",
    "last_day(add_months(at, 1))", "to_date(coalesce(at, now()))",
]  # fmt: skip


def test_no_range_is_made_up(spark: SparkSession) -> None:
    rows = spark.createDataFrame([], "at timestamp, text string")
    assert [text for text in WITHOUT_RANGE if range_of(text, rows, ["2013-01-01"]) is not None] == []

"""The condition that Delta can check against statistics never drops a row, and drops the files without touched rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.transforms.touched_rows import gives_touched, has_value, range_of
from tests.support.examples import few_or_many, settings_for

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
EXPRESSIONS = [
    "to_date(at)", "cast(at as date)", "year(at)", "trunc(at, 'MM')", "to_date(date_trunc('week', `At`))",
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


@pytest.mark.parametrize("kind", ["timestamp", "date"])
@few_or_many(4, 40)
def test_each_row_with_a_touched_value_is_in_the_range(spark: SparkSession, kind: str, examples: int) -> None:
    @settings_for(examples)
    @given(seed=st.integers(0, 2**32), expression=st.sampled_from(EXPRESSIONS))
    def holds(seed: int, expression: str) -> None:
        random = Random(seed)
        rows = spark.createDataFrame(times(random), "at timestamp").select(F.col("at").cast(kind).alias("at"))
        value = F.expr(expression)
        texts = [row[0] for row in rows.select(value.cast("string")).distinct().collect()]
        touched = random.sample(texts, random.randint(1, len(texts)))
        condition = range_of(expression, rows, touched)
        assert condition is not None, "a range is known"
        kept = rows.select(has_value(value, touched).alias("is_touched"), condition.alias("is_in_range")).collect()
        assert any(row["is_touched"] for row in kept)
        assert all(row["is_in_range"] for row in kept if row["is_touched"])
        assert rows.where(gives_touched(expression, rows, touched)).count() == sum(
            bool(row["is_touched"]) for row in kept
        )

    holds()


def test_more_values_than_ranges_are_one_range(spark: SparkSession) -> None:
    rows = spark.range(400).select(F.expr("timestamp'1969-11-01' + make_interval(0, 0, 0, int(id))").alias("at"))
    touched = [f"1969-{11 + day // 30}-{day % 30 + 1:02d}" for day in range(10, 60)] + ["1970-03-01"]
    condition = range_of("to_date(at)", rows, touched)
    assert condition is not None
    ends = rows.where(condition).select(F.min("at").cast("string"), F.max("at").cast("string")).collect()[0]
    assert tuple(ends) == ("1969-11-11 00:00:00", "1970-03-01 00:00:00")
    assert rows.where(gives_touched("to_date(at)", rows, touched)).count() == 51


@pytest.mark.parametrize(
    "expression",
    [
        "at",
        "`at`",
        "month(at)",
        "to_date(text)",
        "to_date(at, 'y')",
        "date_trunc('millisecond', at)",
        "to_date(coalesce(at, now()))",
    ],
)
def test_no_range_is_made_up(spark: SparkSession, expression: str) -> None:
    rows = spark.createDataFrame([], "at timestamp, text string")
    assert range_of(expression, rows, ["2013-01-01"]) is None

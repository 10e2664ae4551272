"""A compiled row rule and Great Expectations itself must name the same failing rows, NULLs and odd values included."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.spec.expectation import Expectation
from include.contracts.spec.expectation_arguments import OWN_EXPECTATIONS, ROW_EXPECTATIONS
from spark_jobs.quality.rules.row_rules import fails
from tests.support.quality.odd_frames import BOUNDS, edge_frame, frame, row_rules, rows, rule
from tests.support.quality.plain_gx import Batches, batches_of_frames


@pytest.fixture(scope="module")
def batches() -> Batches:
    return batches_of_frames()


def by_great_expectations(batches: Batches, df: DataFrame, rules: list[Expectation]) -> list[int | None]:
    found = []
    for result in batches.results(df, rules):
        assert "raised_exception" in result.exception_info, result.exception_info
        found.append(result.result["unexpected_count"] or 0)
        assert result.success is (found[-1] == 0)
    return found


def by_row_rules(df: DataFrame, rules: list[Expectation]) -> list[int]:
    counts = [F.count_if(fails(rule)).alias(str(place)) for place, rule in enumerate(rules)]
    return list(df.agg(*counts).collect()[0])


def test_the_property_covers_every_row_expectation() -> None:
    seen: set[str] = set()

    @settings(max_examples=50, database=None, derandomize=True)
    @given(row_rules())
    def collect(drawn: list[Expectation]) -> None:
        seen.update(rule.name for rule in drawn)

    collect()
    assert seen == ROW_EXPECTATIONS.keys() - OWN_EXPECTATIONS


@pytest.mark.slow
@settings(
    max_examples=12,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # a failing example is small as it is; shrinking it takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=rows(), rules=row_rules())
def test_row_rules_fail_the_rows_that_great_expectations_fails(
    spark: SparkSession, batches: Batches, rows: list[tuple[Any, ...]], rules: list[Expectation]
) -> None:
    df = frame(spark, rows)
    assert by_row_rules(df, rules) == by_great_expectations(batches, df, rules)


def test_all_edge_values_at_once_agree_for_every_bound(spark: SparkSession, batches: Batches) -> None:
    df = edge_frame(spark)
    drawn = [
        rule("expect_column_values_to_be_between", {"column": column, side: bound})
        for column, bounds in BOUNDS.items()
        for bound in bounds
        for side in ("min_value", "max_value")
    ]
    counted = by_row_rules(df, drawn)
    assert len(set(counted)) > 3
    assert counted == by_great_expectations(batches, df, drawn)

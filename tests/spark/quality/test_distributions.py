"""The population stability index follows its definition, and the share of NULLs is as counted."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.fused.comparisons import LEAST_SHARE, compare_version
from millrace_spark.quality.verdicts.restricted_rules import NO_RESTRICTED_RULES
from millrace_spark.quality.verdicts.rule_result import RuleResult
from tests.support.examples import settings_for
from tests.support.quality.compared_version import AT, TABLE, compared_version

PSI = "expect_column_distribution_to_be_stable"
NULLS = "expect_column_null_share_to_be_stable"
VALUES = st.lists(st.sampled_from([None, "", "a", "b", "c"]), min_size=1, max_size=12)


def check_column(
    spark: SparkSession,
    before: list[Any] | None,
    now: list[Any],
    name: str,
    kind: str = "string",
    past_column: str = "v",
    **limit: float,
) -> RuleResult:
    """Check the second of two versions."""
    versions = {1: now} if before is None else {1: now, 0: before}
    frames = {
        (TABLE, version): spark.createDataFrame([(value,) for value in values], f"{column} {kind}")
        for (version, values), column in zip(versions.items(), ("v", past_column), strict=False)
    }
    checked = compared_version(
        frames, certified=None if before is None else 0, rows_of=lambda _, version: len(versions[version])
    )
    rule = Expectation(name=name, arguments={"column": "v", **limit}, action="fail")
    return compare_version(frames[TABLE, 1], rule, checked, NO_RESTRICTED_RULES)


def index_of(before: list[Any], now: list[Any]) -> float:
    """The index as it is defined."""
    counted = Counter(before), Counter(now)
    parts = set(before) | set(now)
    shares = [
        tuple(max(count[part] / len(values), LEAST_SHARE) for count, values in zip(counted, (before, now), strict=True))
        for part in parts
    ]
    return sum((after - earlier) * math.log(after / earlier) for earlier, after in shares)


@settings_for(2)
@given(before=VALUES, now=VALUES)
def test_the_index_of_texts_and_the_share_of_nulls_are_as_defined(
    spark: SparkSession, before: list[Any], now: list[Any]
) -> None:
    result = check_column(spark, before, now, PSI, max_psi=0.1)
    observed = result.details["observed_value"]
    assert observed["psi"] == pytest.approx(index_of(before, now), abs=1e-5)
    assert observed["parts"] == len({*before, *now})
    assert result.passed is (index_of(before, now) <= 0.1)
    result = check_column(spark, before, now, NULLS, max_change=0.25)
    shares = [values.count(None) / len(values) for values in (before, now)]
    assert result.passed is (abs(shares[1] - shares[0]) <= 0.25)
    assert result.details["observed_value"] == pytest.approx({"before": shares[0], "now": shares[1]}, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "values", "others"),
    [
        ("int", list(range(100)), list(range(50, 150))),
        ("timestamp", [AT + timedelta(days=one % 28) for one in range(100)], [AT + timedelta(days=365)] * 100),
    ],
)
def test_ordered_values_are_compared_with_the_tenths_of_before(
    spark: SparkSession, kind: str, values: list[Any], others: list[Any]
) -> None:
    same = check_column(spark, values, values[::-1], PSI, kind, max_psi=0.1)
    assert same.passed
    assert same.details["observed_value"]["psi"] == 0
    assert same.details["observed_value"]["parts"] == 10
    moved = check_column(spark, values, others, PSI, kind, max_psi=0.25)
    assert not moved.passed
    assert moved.details["observed_value"]["psi"] > 1
    assert moved.against == "silver.things version 0"


def test_a_value_that_is_new_is_named(spark: SparkSession) -> None:
    result = check_column(spark, ["a"] * 5 + ["b"] * 5, ["a"] * 5 + ["z"] * 5, PSI, max_psi=0.25)
    assert result.details["observed_value"]["changed_most"] in ("b", "z")


@pytest.mark.parametrize(("name", "limit"), [(PSI, {"max_psi": 1.0}), (NULLS, {"max_change": 1.0})])
def test_no_rows_now_do_not_pass_and_none_before_are_nothing_to_compare_with(
    spark: SparkSession, name: str, limit: dict[str, float]
) -> None:
    assert not check_column(spark, ["a"], [], name, **limit).passed
    assert check_column(spark, [], ["a"], name, **limit).not_judged == "silver.things version 0 has no rows"
    without_past = check_column(spark, None, ["a"], name, **limit)
    assert without_past.not_judged == "there is no certified version before this one"
    assert check_column(spark, ["a"], ["a"], name, past_column="w", **limit).not_judged

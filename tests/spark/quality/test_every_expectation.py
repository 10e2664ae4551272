"""Every expectation that Great Expectations evaluates, on a Spark table: one rule passes, another one fails."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from include.contracts.spec.expectation import Expectation
from include.contracts.spec.expectation_arguments import ARGUMENTS, OWN_EXPECTATIONS
from spark_jobs.quality.fused.rules import COMPILERS
from spark_jobs.quality.suites import check_rules

EVEN = {"bins": [1, 11, 20], "weights": [0.5, 0.5]}
COLUMNS = ["n", "next", "maker", "model", "price", "payload", "day", "built", "seen_at", "share"]
NOTHING: dict[str, Any] = {}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # Expectation -> the arguments of both rules, those of the one that passes, and those of the one that fails.
    "expect_column_kl_divergence_to_be_less_than": (
        {"column": "n", "partition_object": EVEN, "internal_weight_holdout": 0.01, "tail_weight_holdout": 0.01},
        {"threshold": 0.1},
        {"threshold": 0.0001, "partition_object": {**EVEN, "weights": [0.1, 0.9]}, "bucketize_data": True},
    ),
    "expect_column_median_to_be_between": (
        {"column": "n", "min_value": 10.5, "strict_max": True},
        {"max_value": 11},
        {"max_value": 11, "strict_min": True},
    ),
    "expect_column_most_common_value_to_be_in_set": (
        {"column": "maker", "ties_okay": True},
        {"value_set": ["AIRBUS"]},
        {"value_set": ["BOEING"]},
    ),
    "expect_column_pair_values_to_be_equal": (
        {"column_A": "n", "ignore_row_if": "either_value_is_missing", "mostly": 0.9},
        {"column_B": "n"},
        {"column_B": "next"},
    ),
    "expect_column_pair_values_to_be_in_set": (
        {"column_A": "maker", "column_B": "day", "ignore_row_if": "neither", "mostly": 0.1},
        {"value_pairs_set": [["BOEING", "2013-01-01"]]},
        {"value_pairs_set": [["BOEING", "2013-01-02"]]},
    ),
    "expect_column_proportion_of_non_null_values_to_be_between": (
        {"column": "model", "min_value": 0.5, "strict_max": True},
        {"max_value": 0.6},
        {"max_value": 0.6, "strict_min": True},
    ),
    "expect_column_quantile_values_to_be_between": (
        {"column": "n"},
        {"quantile_ranges": {"quantiles": [0.1, 0.5], "value_ranges": [[1, 3], [10, None]]}},
        {"quantile_ranges": {"quantiles": [0.1, 0.5], "value_ranges": [[1, 3], [12, None]]}},
    ),
    "expect_column_stdev_to_be_between": (
        {"column": "n", "min_value": 5, "strict_min": True, "strict_max": True},
        {"max_value": 6},
        {"max_value": 5.5},
    ),
    "expect_column_type_to_be": ({"column": "n"}, {"type_": "IntegerType"}, {"type_": "LongType"}),
    "expect_column_value_lengths_to_equal": ({"column": "maker", "mostly": 0.9}, {"value": 6}, {"value": 5}),
    "expect_column_value_z_scores_to_be_less_than": (
        {"column": "n", "double_sided": True, "mostly": 0.9},
        {"threshold": 2},
        {"threshold": 0.5},
    ),
    "expect_column_values_to_be_in_type_list": (
        {"column": "price", "mostly": 1},
        {"type_list": ["DoubleType", "DecimalType"]},
        {"type_list": ["DoubleType"]},
    ),
    "expect_column_values_to_be_json_parseable": ({"mostly": 0.9}, {"column": "payload"}, {"column": "maker"}),
    "expect_column_values_to_be_of_type": (
        {"column": "n", "mostly": 1},
        {"type_": "IntegralType"},
        {"type_": "StringType"},
    ),
    "expect_column_values_to_match_json_schema": (
        {"column": "payload", "mostly": 0.9},
        {"json_schema": {"required": ["id"]}},
        {"json_schema": {"properties": {"id": {"type": "string"}}}},
    ),
    "expect_column_values_to_match_regex_list": (
        {"column": "maker", "regex_list": ["^A", "S$"], "mostly": 0.95},
        {"match_on": "any", "mostly": 0.9},
        {"match_on": "all"},
    ),
    "expect_column_values_to_match_strftime_format": (
        {"column": "day", "mostly": 0.9},
        {"strftime_format": "%Y-%m-%d"},
        {"strftime_format": "%d.%m.%Y"},
    ),
    "expect_column_values_to_not_be_outliers": (
        {"column": "n", "mostly": 0.9},
        {"method": "iqr", "multiplier": 1.5},
        {"method": "std", "multiplier": 0.5},
    ),
    "expect_column_values_to_not_match_regex_list": (
        {"column": "maker", "mostly": 0.95},
        {"regex_list": ["^X", "^Y"]},
        {"regex_list": ["^X", "^B"]},
    ),
    "expect_multicolumn_sum_to_equal": (
        {"column_list": ["n", "next"], "ignore_row_if": "never"},
        {"sum_total": 3, "mostly": 0.05},
        {"sum_total": 3, "mostly": 0.06},
    ),
    "expect_multicolumn_values_to_be_equal": (
        {"ignore_row_if": "any_value_is_missing", "mostly": 0.9},
        {"column_list": ["n", "n"]},
        {"column_list": ["n", "next"]},
    ),
    "expect_select_column_values_to_be_unique_within_record": (
        {"ignore_row_if": "all_values_are_missing", "mostly": 0.9},
        {"column_list": ["n", "next"]},
        {"column_list": ["n", "n"]},
    ),
    "expect_table_column_count_to_equal": (NOTHING, {"value": 10}, {"value": 11}),
    "expect_table_columns_to_match_ordered_list": (
        NOTHING,
        {"column_list": COLUMNS},
        {"column_list": ["wings", *COLUMNS]},
    ),
}


ONE_OF_EACH_KIND = {
    "expect_column_median_to_be_between",
    "expect_column_pair_values_to_be_in_set",
    "expect_column_values_to_be_of_type",
    "expect_column_values_to_match_regex_list",
    "expect_multicolumn_sum_to_equal",
    "expect_table_columns_to_match_ordered_list",
}
"""A failed rule costs Great Expectations more queries than all rules that pass."""


@pytest.fixture(scope="module")
def planes(spark: SparkSession) -> DataFrame:
    """Twenty planes: the odd ones have no model, all but two are of one maker."""
    return spark.range(1, 21).selectExpr(
        "CAST(id AS INT) AS n",
        "CAST(id + 1 AS INT) AS next",
        "IF(id <= 2, 'BOEING', 'AIRBUS') AS maker",
        "IF(id % 2 = 1, NULL, CONCAT('m', id)) AS model",
        "CAST(id + 0.5 AS DECIMAL(10, 2)) AS price",
        """CONCAT('{"id": ', id, '}') AS payload""",
        "'2013-01-01' AS day",
        "DATE'2013-01-31' AS built",
        "TIMESTAMP'2013-01-31 06:00:00' AS seen_at",
        "CAST(0.1 AS DECIMAL(5, 2)) AS share",
    )


def test_every_expectation_has_a_rule_that_passes_and_one_that_fails_with_all_its_arguments() -> None:
    assert CASES.keys() == ARGUMENTS.keys() - OWN_EXPECTATIONS - COMPILERS.keys()
    for name, arguments in CASES.items():
        assert {key for given in arguments for key in given} == set(ARGUMENTS[name].all_names), name


@pytest.mark.parametrize(
    "failing", [ONE_OF_EACH_KIND, pytest.param({*CASES}, marks=pytest.mark.slow)], ids=["one of each kind", "all"]
)
def test_each_passes_and_fails_on_a_spark_table(planes: DataFrame, failing: set[str]) -> None:
    values: dict[str, list[Any]] = {
        "built": ["2013-01-31", "2013-01-30"],
        "seen_at": ["2013-01-31T06:00:00Z", "2013-01-31"],
        "share": [0.1, 0.2],
    }
    common = "expect_column_most_common_value_to_be_in_set"
    cases = [(name, {**both, **right}, True) for name, (both, right, _) in CASES.items()]
    cases += [(name, {**CASES[name][0], **CASES[name][2]}, False) for name in sorted(failing)]
    for column, of_column in values.items():
        cases += [
            (common, {"column": column, "value_set": [value]}, passes)
            for value, passes in zip(of_column, (True, False), strict=True)
        ]
    rules = [Expectation(name=name, arguments=given, action="warn") for name, given, _ in cases]
    checks = check_rules(planes, rules).checks
    assert [(check.bounded_rule, check.error) for check in checks if check.error] == []
    assert [check.rule for check in checks] == [rule.rule for rule in rules]
    assert [check for check, (_, _, passes) in zip(checks, cases, strict=True) if check.passed is not passes] == []
    for check in checks:
        assert type(check).model_validate_json(check.model_dump_json()) == check
    assert not planes.is_cached, "Great Expectations keeps no frame in memory"

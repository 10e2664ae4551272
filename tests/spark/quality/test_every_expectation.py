"""Every expectation that Great Expectations evaluates, on a Spark table."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.spec.expectation import Expectation
from millrace.contracts.spec.expectation_arguments import ARGUMENTS, OWN_EXPECTATIONS
from millrace_spark.quality.fused.rules import COMPILERS
from millrace_spark.quality.suites import check_rules

COMMON = "expect_column_most_common_value_to_be_in_set"
COLUMNS = ["n", "next", "maker", "model", "price", "payload", "day", "built", "seen_at", "share"]
TENTHS = {"quantiles": [0.1, 0.5], "value_ranges": [[1, 3], [10, None]]}

PASSING: dict[str, dict[str, Any]] = {
    "expect_column_kl_divergence_to_be_less_than": {
        "column": "n",
        "partition_object": {"bins": [1, 11, 20], "weights": [0.5, 0.5]},
        "threshold": 0.1,
    },
    "expect_column_median_to_be_between": {"column": "n", "min_value": 10.5, "max_value": 11},
    COMMON: {"column": "maker", "value_set": ["AIRBUS"]},
    "expect_column_pair_values_to_be_equal": {"column_A": "n", "column_B": "n"},
    "expect_column_pair_values_to_be_in_set": {
        "column_A": "maker",
        "column_B": "day",
        "value_pairs_set": [["BOEING", "2013-01-01"]],
        "mostly": 0.1,
    },
    "expect_column_proportion_of_non_null_values_to_be_between": {"column": "model", "max_value": 0.6},
    "expect_column_quantile_values_to_be_between": {"column": "n", "quantile_ranges": TENTHS},
    "expect_column_stdev_to_be_between": {"column": "n", "min_value": 5, "max_value": 6},
    "expect_column_type_to_be": {"column": "n", "type_": "IntegerType"},
    "expect_column_value_lengths_to_equal": {"column": "maker", "value": 6},
    "expect_column_value_z_scores_to_be_less_than": {"column": "n", "threshold": 2, "double_sided": True},
    "expect_column_values_to_be_in_type_list": {"column": "price", "type_list": ["DoubleType", "DecimalType"]},
    "expect_column_values_to_be_json_parseable": {"column": "payload"},
    "expect_column_values_to_be_of_type": {"column": "n", "type_": "IntegralType"},
    "expect_column_values_to_match_json_schema": {"column": "payload", "json_schema": {"required": ["id"]}},
    "expect_column_values_to_match_regex_list": {"column": "maker", "regex_list": ["^A", "S$"], "mostly": 0.9},
    "expect_column_values_to_match_strftime_format": {"column": "day", "strftime_format": "%Y-%m-%d"},
    "expect_column_values_to_not_be_outliers": {"column": "n", "method": "iqr", "multiplier": 1.5},
    "expect_column_values_to_not_match_regex_list": {"column": "maker", "regex_list": ["^X", "^Y"]},
    "expect_multicolumn_sum_to_equal": {"column_list": ["n", "next"], "sum_total": 3, "mostly": 0.05},
    "expect_multicolumn_values_to_be_equal": {"column_list": ["n", "n"]},
    "expect_select_column_values_to_be_unique_within_record": {"column_list": ["n", "next"]},
    "expect_table_column_count_to_equal": {"value": 10},
    "expect_table_columns_to_match_ordered_list": {"column_list": COLUMNS},
}
OTHERWISE: dict[str, dict[str, Any]] = {
    "expect_column_median_to_be_between": {"strict_min": True},
    "expect_column_pair_values_to_be_in_set": {"value_pairs_set": [["BOEING", "2013-01-02"]]},
    "expect_column_values_to_be_of_type": {"type_": "StringType"},
    "expect_column_values_to_match_regex_list": {"match_on": "all", "mostly": 0.95},
    "expect_multicolumn_sum_to_equal": {"mostly": 0.06},
    "expect_table_columns_to_match_ordered_list": {"column_list": ["wings", *COLUMNS]},
}
"""An expectation of each kind -> arguments with which it fails: that costs more queries than all that pass."""
VALUES: list[tuple[str, Any, bool]] = [
    ("built", "2013-01-31", True),
    ("built", "2013-01-30", False),
    ("seen_at", "2013-01-31T06:00:00Z", True),
    ("seen_at", "2013-01-31", False),
    ("share", 0.1, True),
    ("share", 0.2, False),
]
"""A column, a value, and whether that is its most common value, which is compared in Python."""


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


def test_each_passes_on_a_spark_table_and_one_of_each_kind_fails(planes: DataFrame) -> None:
    assert PASSING.keys() == ARGUMENTS.keys() - OWN_EXPECTATIONS - COMPILERS.keys()
    cases = [(name, arguments, True) for name, arguments in PASSING.items()]
    cases += [(name, {**PASSING[name], **arguments}, False) for name, arguments in OTHERWISE.items()]
    cases += [(COMMON, {"column": column, "value_set": [value]}, passes) for column, value, passes in VALUES]
    rules = [Expectation(name=name, arguments=arguments, action="warn") for name, arguments, _ in cases]
    checks, _ = check_rules(planes, rules)
    assert [(check.bounded_rule, check.error) for check in checks if check.error] == []
    assert [check.rule for check in checks] == [rule.rule for rule in rules]
    assert [check for check, (_, _, passes) in zip(checks, cases, strict=True) if check.passed is not passes] == []
    for check in checks:
        assert type(check).model_validate_json(check.model_dump_json()) == check
    assert not planes.is_cached, "Great Expectations keeps no frame in memory"

"""The other expectations of Great Expectations' core: a table version is checked by them, and never a single row.

Nothing here imports Great Expectations, which takes seconds: a test compares the names and arguments with the installed
version.
"""

from __future__ import annotations

from typing import Any

from millrace.contracts.spec.arguments import COLUMN, COLUMN_BOUNDS, Arguments

_COLUMN_SET = Arguments(required=("column", "value_set"))
_SEVERAL = Arguments(required=("column_list",), optional=("ignore_row_if", "mostly"))

GX_EXPECTATIONS = {
    "expect_column_distinct_values_to_contain_set": _COLUMN_SET,
    "expect_column_distinct_values_to_equal_set": _COLUMN_SET,
    "expect_column_kl_divergence_to_be_less_than": Arguments(
        required=("column", "partition_object", "threshold"),
        optional=("bucketize_data", "internal_weight_holdout", "tail_weight_holdout"),
    ),
    "expect_column_median_to_be_between": COLUMN_BOUNDS,
    "expect_column_most_common_value_to_be_in_set": Arguments(("column", "value_set"), ("ties_okay",)),
    "expect_column_pair_values_to_be_equal": Arguments(("column_A", "column_B"), ("ignore_row_if", "mostly")),
    "expect_column_pair_values_to_be_in_set": Arguments(
        required=("column_A", "column_B", "value_pairs_set"), optional=("ignore_row_if", "mostly")
    ),
    "expect_column_proportion_of_non_null_values_to_be_between": COLUMN_BOUNDS,
    "expect_column_quantile_values_to_be_between": Arguments(required=("column", "quantile_ranges")),
    "expect_column_stdev_to_be_between": COLUMN_BOUNDS,
    "expect_column_type_to_be": Arguments(required=("column", "type_")),
    "expect_column_value_lengths_to_equal": Arguments(("column", "value"), ("mostly",)),
    "expect_column_value_z_scores_to_be_less_than": Arguments(("column", "threshold", "double_sided"), ("mostly",)),
    "expect_column_values_to_be_in_type_list": Arguments(("column", "type_list"), ("mostly",)),
    "expect_column_values_to_be_json_parseable": COLUMN,
    "expect_column_values_to_be_of_type": Arguments(("column", "type_"), ("mostly",)),
    "expect_column_values_to_match_json_schema": Arguments(("column", "json_schema"), ("mostly",)),
    "expect_column_values_to_match_regex_list": Arguments(("column", "regex_list"), ("match_on", "mostly")),
    "expect_column_values_to_match_strftime_format": Arguments(("column", "strftime_format"), ("mostly",)),
    "expect_column_values_to_not_be_outliers": Arguments(("column",), ("method", "multiplier", "mostly")),
    "expect_column_values_to_not_match_regex_list": Arguments(("column", "regex_list"), ("mostly",)),
    "expect_multicolumn_sum_to_equal": Arguments(("column_list", "sum_total"), ("ignore_row_if", "mostly")),
    "expect_multicolumn_values_to_be_equal": _SEVERAL,
    "expect_select_column_values_to_be_unique_within_record": _SEVERAL,
    "expect_table_column_count_to_equal": Arguments(required=("value",)),
    "expect_table_columns_to_match_ordered_list": Arguments(required=("column_list",)),
}
"""Expectation -> its arguments."""

_NO_ORDER = "the rows of a table have no order"
_NOT_WRITTEN = "Great Expectations does not implement it for Spark"
_LIKE = (_NOT_WRITTEN, "write the pattern as a regular expression: expect_column_values_to_match_regex")

NOT_ON_SPARK = {
    "expect_column_bootstrapped_ks_test_p_value_to_be_greater_than": (_NOT_WRITTEN, ""),
    "expect_column_chisquare_test_p_value_to_be_greater_than": (
        _NOT_WRITTEN,
        "use expect_column_distribution_to_be_stable",
    ),
    "expect_column_pair_cramers_phi_value_to_be_less_than": (_NOT_WRITTEN, ""),
    "expect_column_parameterized_distribution_ks_test_p_value_to_be_greater_than": (_NOT_WRITTEN, ""),
    "expect_column_values_to_be_dateutil_parseable": (
        _NOT_WRITTEN,
        "use expect_column_values_to_match_strftime_format",
    ),
    "expect_column_values_to_be_decreasing": (_NO_ORDER, ""),
    "expect_column_values_to_be_increasing": (_NO_ORDER, ""),
    "expect_column_values_to_match_like_pattern": _LIKE,
    "expect_column_values_to_match_like_pattern_list": _LIKE,
    "expect_column_values_to_not_match_like_pattern": _LIKE,
    "expect_column_values_to_not_match_like_pattern_list": _LIKE,
    "expect_multicolumn_values_to_be_unique": (
        "Great Expectations has replaced it",
        "use expect_select_column_values_to_be_unique_within_record",
    ),
    "expect_query_results_to_match_comparison": (
        "it needs a second SQL database",
        "use expect_table_to_reconcile_with_source",
    ),
    "expect_table_row_count_to_equal_other_table": (
        _NOT_WRITTEN,
        "use expect_table_to_reconcile_with_source with count(*)",
    ),
}
"""Expectation of Great Expectations' core that cannot check a Spark table -> the reason, and what to use instead."""

SPARK_TYPES = (
    *("ArrayType", "BinaryType", "BooleanType", "ByteType", "DateType", "DecimalType", "DoubleType", "FloatType"),
    *("IntegerType", "IntegralType", "LongType", "MapType", "NumericType", "ShortType", "StringType", "StructType"),
    *("TimestampNTZType", "TimestampType"),
)
"""The classes of `pyspark.sql.types` by which Great Expectations names types."""

_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_SHARES = {"type": "array", "items": _SHARE, "minItems": 1}
_REGEXES = {"type": "array", "items": {"type": "string", "format": "regex"}, "minItems": 1}
_PAIR = {"type": "array", "minItems": 2, "maxItems": 2}
_IGNORE_PAIRS = ("both_values_are_missing", "either_value_is_missing", "neither")
_IGNORE_SEVERAL = ("all_values_are_missing", "any_value_is_missing", "never")

GX_ARGUMENT_SCHEMAS: dict[str, dict[str, Any]] = {
    "bucketize_data": {"type": "boolean"},
    "double_sided": {"type": "boolean"},
    "ignore_row_if": {"type": "string", "enum": [*_IGNORE_PAIRS, *_IGNORE_SEVERAL]},
    "internal_weight_holdout": _SHARE,
    "json_schema": {"type": "object"},
    "match_on": {"type": "string", "enum": ["any", "all"]},
    "method": {"type": "string", "enum": ["iqr", "std"]},
    "multiplier": {"type": "number", "minimum": 0},
    "partition_object": {
        "type": "object",
        "additionalProperties": False,
        "required": ["weights"],
        "properties": {
            "bins": {"type": "array", "items": {"type": "number"}, "minItems": 2},
            "values": {"type": "array", "minItems": 1},
            "weights": _SHARES,
            "tail_weights": {**_SHARES, "minItems": 2, "maxItems": 2},
        },
        "oneOf": [{"required": ["bins"]}, {"required": ["values"]}],
    },
    "quantile_ranges": {
        "type": "object",
        "additionalProperties": False,
        "required": ["quantiles", "value_ranges"],
        "properties": {
            "quantiles": _SHARES,
            "value_ranges": {
                "type": "array",
                "minItems": 1,
                "items": {**_PAIR, "items": {"type": ["number", "null"]}},
            },
        },
    },
    "regex_list": _REGEXES,
    "strftime_format": {"type": "string"},
    "sum_total": {"type": "number"},
    "tail_weight_holdout": _SHARE,
    "threshold": {"type": "number", "minimum": 0},
    "ties_okay": {"type": "boolean"},
    "type_": {"type": "string", "enum": list(SPARK_TYPES)},
    "type_list": {"type": "array", "items": {"type": "string", "enum": list(SPARK_TYPES)}, "minItems": 1},
    "value_pairs_set": {"type": "array", "items": _PAIR, "minItems": 1},
}
"""Argument -> the JSON Schema of its value."""


def ignored_rows(takes: Arguments) -> tuple[str, ...]:
    """Return the values that `ignore_row_if` may have for an expectation with these arguments."""
    return _IGNORE_PAIRS if "column_A" in takes.required else _IGNORE_SEVERAL

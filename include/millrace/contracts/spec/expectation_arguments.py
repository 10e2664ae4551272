"""The arguments of each expectation of a spec, with the names of Great Expectations."""

from __future__ import annotations

from typing import Any

from millrace.contracts.spec.arguments import BOUNDS, COLUMN, COLUMN_BOUNDS, STRICT, Arguments
from millrace.contracts.spec.custom_expectations import EXPECTATIONS, read_custom_expectations
from millrace.contracts.spec.duration import AGE
from millrace.contracts.spec.gx_expectations import GX_ARGUMENT_SCHEMAS, GX_EXPECTATIONS, ignored_rows

COLUMN_ARGUMENTS = ("column", "column_A", "column_B")
"""The arguments that name one column each; `column_list` and `column_set` name several."""

COLUMN_LIST_ARGUMENTS = ("column_list", "column_set")

_COLUMN_VALUES_BOUNDS = Arguments(required=("column",), one_of=BOUNDS, optional=(*STRICT, "mostly"))
_COLUMN_SET = Arguments(required=("column", "value_set"), optional=("mostly",))
_COLUMN_REGEX = Arguments(required=("column", "regex"), optional=("mostly",))

SQL = "expect_sql"
"""Millrace's own expectation that a condition in SQL is not false; a spec may state the condition alone, as text."""

QUERY = "expect_query_to_return_no_rows"
"""Millrace's own expectation on a query, which names its tables in braces."""

ROW_EXPECTATIONS = {
    "expect_column_values_to_not_be_null": COLUMN,
    "expect_column_values_to_be_null": COLUMN,
    "expect_column_values_to_be_between": _COLUMN_VALUES_BOUNDS,
    "expect_column_value_lengths_to_be_between": _COLUMN_VALUES_BOUNDS,
    "expect_column_values_to_be_in_set": _COLUMN_SET,
    "expect_column_values_to_not_be_in_set": _COLUMN_SET,
    "expect_column_values_to_match_regex": _COLUMN_REGEX,
    "expect_column_values_to_not_match_regex": _COLUMN_REGEX,
    "expect_column_pair_values_a_to_be_greater_than_b": Arguments(
        required=("column_A", "column_B"), optional=("or_equal", "mostly")
    ),
    SQL: Arguments(required=("condition",), optional=("mostly",)),
}
"""The expectations that can check a single row, and so may quarantine or drop it."""

VERSION_EXPECTATIONS = {
    "expect_column_values_to_be_unique": COLUMN,
    "expect_column_distinct_values_to_be_in_set": Arguments(required=("column", "value_set")),
    "expect_column_max_to_be_between": COLUMN_BOUNDS,
    "expect_column_mean_to_be_between": COLUMN_BOUNDS,
    "expect_column_min_to_be_between": COLUMN_BOUNDS,
    "expect_column_sum_to_be_between": COLUMN_BOUNDS,
    "expect_column_proportion_of_unique_values_to_be_between": COLUMN_BOUNDS,
    "expect_column_unique_value_count_to_be_between": COLUMN_BOUNDS,
    "expect_column_to_exist": Arguments(required=("column",), optional=("column_index",)),
    "expect_compound_columns_to_be_unique": Arguments(required=("column_list",), optional=("mostly",)),
    "expect_table_column_count_to_be_between": Arguments(one_of=BOUNDS),
    "expect_table_columns_to_match_set": Arguments(required=("column_set",), optional=("exact_match",)),
    "expect_table_row_count_to_be_between": Arguments(one_of=BOUNDS, optional=STRICT),
    "expect_table_row_count_to_equal": Arguments(required=("value",)),
    **GX_EXPECTATIONS,
}
"""The expectations of Great Expectations that can check only a whole table version."""

REFERENCES = {
    "expect_column_values_to_exist_in_other_table": Arguments(
        required=("column", "other_table", "other_column"), optional=("mostly", "wait_at_most")
    ),
    "expect_compound_columns_to_exist_in_other_table": Arguments(
        required=("column_list", "other_table", "other_column_list"), optional=("mostly", "wait_at_most")
    ),
}
"""The expectations on the values of another table: they check a version, or single rows of silver, which then wait."""

COMPARISONS = {
    "expect_table_to_be_fresh": Arguments(required=("column", "max_age"), optional=("as_of",)),
    "expect_table_row_count_to_be_near_median": Arguments(
        required=("of_last",), one_of=("min_percent", "max_percent"), optional=("rows",)
    ),
    **REFERENCES,
    "expect_table_columns_to_be_stable": Arguments(optional=("allow",)),
    "expect_column_null_share_to_be_stable": Arguments(required=("column", "max_change")),
    "expect_column_distribution_to_be_stable": Arguments(required=("column", "max_psi")),
    QUERY: Arguments(required=("query",)),
    "expect_table_to_reconcile_with_source": Arguments(
        required=("source", "measure", "source_measure"), optional=("tolerance_percent",)
    ),
}
"""Millrace's own expectations: they compare a version with its interval, its past, or other tables."""

COUNTS_OF_COLUMNS = frozenset(
    {
        "expect_column_proportion_of_non_null_values_to_be_between",
        "expect_column_proportion_of_unique_values_to_be_between",
        "expect_column_unique_value_count_to_be_between",
        "expect_column_null_share_to_be_stable",
    }
)
"""The expectations on columns that observe a count or a share, and no value of a row."""

OWN_EXPECTATIONS = frozenset({SQL, *COMPARISONS})
"""The expectations that Great Expectations does not have."""

_BUILT_IN = {**ROW_EXPECTATIONS, **VERSION_EXPECTATIONS, **COMPARISONS}

CUSTOM_EXPECTATIONS, CUSTOM_ERRORS = read_custom_expectations(EXPECTATIONS, _BUILT_IN)
"""The project's own expectations by name, and the files of them that cannot be read."""

ARGUMENTS = {**_BUILT_IN, **{name: custom.arguments for name, custom in CUSTOM_EXPECTATIONS.items()}}
"""Expectation -> its arguments; a test compares them with the installed Great Expectations."""

BAND_ARGUMENTS = {
    **dict.fromkeys(("min_value", "min_percent", "mostly"), 1),
    **dict.fromkeys(
        ("max_value", "max_percent", "max_age", "max_change", "max_psi", "threshold", "tolerance_percent"), -1
    ),
    **dict.fromkeys(STRICT, 0),
}
"""Argument of a narrower band -> 1 if a greater value is narrower, -1 if a smaller value is, 0 for the others."""

_NUMBER_OR_TEXT = {"type": ["number", "string"]}
_NAMES = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_YES_OR_NO = {"type": "boolean"}
_PERCENT = {"type": "number", "minimum": 0}
_TABLE = {"type": "string", "pattern": r"^(bronze|silver|gold)\.[a-z][a-z0-9_]*$"}

ARGUMENT_SCHEMAS: dict[str, dict[str, Any]] = {
    "column": {"type": "string"},
    "column_A": {"type": "string"},
    "column_B": {"type": "string"},
    "column_list": _NAMES,
    "column_set": _NAMES,
    "column_index": {"type": "integer"},
    "value_set": {"type": "array", "minItems": 1},
    "regex": {"type": "string"},
    "value": {"type": "integer"},
    "min_value": _NUMBER_OR_TEXT,
    "max_value": _NUMBER_OR_TEXT,
    "strict_min": _YES_OR_NO,
    "strict_max": _YES_OR_NO,
    "or_equal": _YES_OR_NO,
    "exact_match": _YES_OR_NO,
    "mostly": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "max_age": {"type": "string", "pattern": AGE.pattern},
    "as_of": {"type": "string", "enum": ["interval_end", "commit"]},
    "of_last": {"type": "integer", "minimum": 1},
    "rows": {"type": "string", "enum": ["in_table", "applied"]},
    "min_percent": _PERCENT,
    "max_percent": _PERCENT,
    "other_table": _TABLE,
    "other_column": {"type": "string"},
    "other_column_list": _NAMES,
    "wait_at_most": {"type": "string", "pattern": AGE.pattern},
    "allow": {"type": "array", "items": {"type": "string", "enum": ["added", "removed", "retyped"]}, "minItems": 1},
    "max_change": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "max_psi": {"type": "number", "exclusiveMinimum": 0},
    "source": _TABLE,
    "measure": {"type": "string"},
    "source_measure": {"type": "string"},
    "tolerance_percent": _PERCENT,
    "condition": {"type": "string"},
    "query": {"type": "string"},
    **GX_ARGUMENT_SCHEMAS,
}
"""Argument -> the JSON Schema of its value, for the catalog's checks and for the editors' schema."""


ARGUMENT_MEANINGS = {
    "column": "the column",
    "column_A": "the column whose value is compared",
    "column_B": "the column that it is compared with",
    "column_list": "the columns, together",
    "column_set": "the names of the columns that the table has",
    "column_index": "the place of the column, counted from 0; the place 0 itself is not checked",
    "value_set": "the values",
    "regex": "a regular expression, in the form of Java; a match anywhere in the text counts",
    "value": "the number",
    "min_value": "the lower bound, which itself passes",
    "max_value": "the upper bound, which itself passes",
    "strict_min": "whether the lower bound itself fails",
    "strict_max": "whether the upper bound itself fails",
    "or_equal": "whether equal values pass",
    "exact_match": "whether further columns fail; true by default",
    "mostly": "the share of the rows that must pass; 1 by default",
    "max_age": "how much older than the reference the newest value may be",
    "as_of": "the reference: the end of the batch's interval (default), or the time of its commit",
    "of_last": "how many earlier certified versions make the median",
    "rows": "what is counted: the rows of the table (default), or those that the run applied",
    "min_percent": "the lower bound, as a percentage of the median",
    "max_percent": "the upper bound, as a percentage of the median",
    "other_table": "the table that must have the values, at its certified version",
    "other_column": "the column of that table",
    "other_column_list": "the columns of that table, in the order of `column_list`",
    "wait_at_most": "how long a quarantined row waits for the other table; then it waits for a person",
    "allow": "the changes that pass",
    "max_change": "by how much the share of rows without a value may differ from the last certified version",
    "max_psi": "the greatest population stability index against the last certified version: 0.1 is a small shift",
    "source": "a table that this one reads, at the version that the batch has read",
    "measure": "a Spark SQL aggregate over this version",
    "source_measure": "a Spark SQL aggregate over the source",
    "tolerance_percent": "how much the two may differ, as a percentage of the source's; 0 by default",
    "condition": "a condition in Spark SQL on one row, which fails where it is false",
    "query": "one SELECT, with its tables in braces: `{table}` is the checked version",
    "bucketize_data": "whether values are put into the bins of `partition_object`",
    "double_sided": "whether low values count, too",
    "ignore_row_if": "the rows that are not checked",
    "internal_weight_holdout": "the weight that is spread over empty bins",
    "json_schema": "a JSON Schema",
    "match_on": "whether one of the patterns, or all, must match",
    "method": "the interquartile range, or standard deviations",
    "multiplier": "how many of them a value may be away",
    "partition_object": "the expected distribution: `values` or `bins`, with `weights`",
    "quantile_ranges": "the `quantiles`, and their `value_ranges`",
    "regex_list": "regular expressions",
    "strftime_format": "a format of Python's strftime",
    "sum_total": "the sum of the columns in each row",
    "tail_weight_holdout": "the weight of values beyond the bins",
    "threshold": "the bound",
    "ties_okay": "whether other values may be as frequent",
    "type_": "a class of Spark, such as `IntegerType`",
    "type_list": "classes of Spark",
    "value_pairs_set": "the pairs of values",
}
"""Argument -> its meaning, for the reference and for editors."""


def argument_schema(name: str, argument: str) -> dict[str, Any]:
    """Return the JSON Schema of an argument's value for the expectation `name`."""
    if name in CUSTOM_EXPECTATIONS and argument in CUSTOM_EXPECTATIONS[name].schemas:
        return CUSTOM_EXPECTATIONS[name].schemas[argument]
    schema = {**ARGUMENT_SCHEMAS[argument], "description": ARGUMENT_MEANINGS[argument]}
    return {**schema, "enum": list(ignored_rows(ARGUMENTS[name]))} if argument == "ignore_row_if" else schema

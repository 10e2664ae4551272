"""Compile table rules to figures of one pass, with the results that Great Expectations would give.

That includes unusual values: NULL fails no rule except `expect_column_values_to_not_be_null`, an empty table has no
figures, and a missing figure is never between bounds.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql.types import StructType

from millrace.contracts.spec.expectation import Expectation
from millrace.contracts.spec.expectation_arguments import ARGUMENTS, ROW_EXPECTATIONS, SQL
from millrace.errors import SpecError
from millrace_spark.quality.fused import failing_rows as rows
from millrace_spark.quality.fused import figures
from millrace_spark.quality.fused.rule import Compile, FusedRule
from millrace_spark.quality.rules.figure_bounds import NotFusedError

COMPILERS: dict[str, Compile] = {
    **dict.fromkeys(ROW_EXPECTATIONS, rows.row_rule),
    SQL: rows.sql_rule,
    "expect_column_values_to_be_unique": rows.unique,
    "expect_compound_columns_to_be_unique": rows.unique,
    "expect_column_distinct_values_to_be_in_set": rows.distinct_in_set,
    "expect_column_distinct_values_to_contain_set": rows.distinct_contain_set,
    "expect_column_distinct_values_to_equal_set": rows.distinct_equal_set,
    "expect_column_unique_value_count_to_be_between": figures.distinct_count,
    "expect_column_proportion_of_unique_values_to_be_between": figures.distinct_share,
    "expect_table_row_count_to_be_between": figures.row_count,
    "expect_table_row_count_to_equal": figures.row_count_equal,
    "expect_column_mean_to_be_between": figures.mean,
    "expect_column_sum_to_be_between": figures.total,
    "expect_column_min_to_be_between": partial(figures.extreme, "least"),
    "expect_column_max_to_be_between": partial(figures.extreme, "greatest"),
    "expect_column_to_exist": figures.column_exists,
    "expect_table_column_count_to_be_between": figures.column_count,
    "expect_table_columns_to_match_set": figures.column_set,
}
"""Expectation -> the function that compiles it."""


def compile_rule(rule: Expectation, schema: StructType) -> FusedRule | None:
    """Compile the rule for a frame of this schema; return None if Great Expectations must evaluate it.

    It must where it compares values in its own way, such as the least of texts, and where arguments are wrong: its
    error then says why.
    """
    signature = ARGUMENTS[rule.name]
    has_valid_names = set(signature.required) <= set(rule.arguments) <= set(signature.all_names)
    if not has_valid_names or rule.name not in COMPILERS:
        return None
    try:
        return COMPILERS[rule.name](rule, schema)
    except (NotFusedError, SpecError):
        return None

"""Table rules on one figure of the table or of a column, and rules on which columns there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StructType,
    TimestampType,
)

from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.fused.one_pass import Facts, Figures, group_figure
from spark_jobs.quality.fused.rule import ROWS, FusedRule, single_figure_rule
from spark_jobs.quality.rules.figure_bounds import NotFusedError, between, day, moment_between, number, whole
from spark_jobs.quality.verdicts.rule_result import RuleResult


def distinct_count(rule: Expectation, _schema: StructType) -> FusedRule:
    """Compile a rule on the number of different values of a column."""
    group, compare = (rule.arguments["column"],), between(rule.arguments, whole)
    return FusedRule(Figures(groups=frozenset({group})), lambda facts: compare(facts[group_figure(group, "values")]))


def distinct_share(rule: Expectation, _schema: StructType) -> FusedRule:
    """Compile a rule on the number of different values of a column, as a share of its rows with a value."""
    group, compare = (rule.arguments["column"],), between(rule.arguments, number)

    def share(facts: Facts) -> RuleResult:
        values, rows = facts[group_figure(group, "values")], facts[group_figure(group, "rows")]
        return compare(values / rows if rows else 0)

    return FusedRule(Figures(groups=frozenset({group})), share)


def row_count(rule: Expectation, _schema: StructType) -> FusedRule:
    """Compile a rule on the number of rows of the table."""
    compare = between(rule.arguments, whole)
    bounds: list[Any] = [rule.arguments.get(key) for key in ("min_value", "max_value")]
    if None not in bounds and bounds[0] > bounds[1]:
        raise NotFusedError("Great Expectations does not accept these bounds")
    return single_figure_rule(ROWS, F.count(F.lit(1)), compare)


def row_count_equal(rule: Expectation, _schema: StructType) -> FusedRule:
    """Compile a rule on the exact number of rows of the table."""
    value = rule.arguments["value"]
    return single_figure_rule(ROWS, F.count(F.lit(1)), between({"min_value": value, "max_value": value}, whole))


def mean(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule on a column's mean."""
    column = rule.arguments["column"]
    if not isinstance(schema[column].dataType, DecimalType | IntegerType | LongType | DoubleType | FloatType):
        raise NotFusedError(f"{column} has no mean")
    return single_figure_rule(f"mean of {column}", F.mean(column), between(rule.arguments, number))


def total(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule on a column's sum."""
    column, kind = rule.arguments["column"], schema[rule.arguments["column"]].dataType
    if not isinstance(kind, NumericType):
        raise NotFusedError(f"{column} has no sum")
    # A sum of whole numbers could overflow, which must not fail the query and with it all other rules.
    is_whole = isinstance(kind, ByteType | ShortType | IntegerType | LongType)
    summed = F.sum(F.col(column).cast("double") if is_whole else F.col(column))
    return single_figure_rule(f"sum of {column}", summed, between(rule.arguments, number))


def extreme(word: str, aggregate: Callable[[str], Column], rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule on a column's least or greatest value; `word` is the one of both that `aggregate` returns."""
    column = rule.arguments["column"]
    value, kind = aggregate(column), schema[column].dataType
    if isinstance(kind, TimestampType):
        # As a number, because PySpark returns moments in the zone of the process.
        return single_figure_rule(f"{word} {column}", F.unix_micros(value), moment_between(rule.arguments))
    if isinstance(kind, NumericType):
        return single_figure_rule(f"{word} {column}", value, between(rule.arguments, number))
    if isinstance(kind, DateType):
        return single_figure_rule(f"{word} {column}", value, between(rule.arguments, day))
    raise NotFusedError(f"the bounds of {kind.simpleString()} are read in Great Expectations' own way")


def column_exists(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule that a column exists, at a given position if the rule has one."""
    column, index = rule.arguments["column"], rule.arguments.get("column_index")
    # Great Expectations ignores the position 0.
    candidates = schema.names[index : index + 1 or None] if index else schema.names
    return _constant_rule(RuleResult(column in candidates))


def column_count(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule on the number of columns."""
    return _constant_rule(between(rule.arguments, whole)(len(_plain_columns(schema))))


def column_set(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule that exactly these columns exist, or at least these."""
    existing, expected = set(_plain_columns(schema)), set(rule.arguments["column_set"])
    passed = existing == expected if rule.arguments.get("exact_match", True) else expected <= existing
    return _constant_rule(RuleResult(passed, {"observed_value": sorted(existing)}))


def _constant_rule(result: RuleResult) -> FusedRule:
    return FusedRule(Figures(), lambda _: result)


def _plain_columns(schema: StructType) -> list[str]:
    if any(isinstance(field.dataType, StructType) for field in schema):
        raise NotFusedError("Great Expectations counts nested fields as columns")
    return schema.names

"""Table rules on one figure of the table or of a column, and on which columns there are."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
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
from spark_jobs.quality.fused.one_pass import Facts, Figures, of_group
from spark_jobs.quality.fused.rule import ROWS, FusedRule, of_one_figure
from spark_jobs.quality.rules.figure_bounds import (
    Judge,
    NotFusedError,
    date_between,
    moment_between,
    number_between,
    whole_between,
)
from spark_jobs.quality.verdicts.judgement import Judgement, observed


def distinct_count(rule: Expectation, _schema: StructType) -> FusedRule:
    """How many values a column has."""
    group, judge = (rule.arguments["column"],), whole_between(rule.arguments)
    return FusedRule(Figures(groups=frozenset({group})), lambda facts: judge(facts[of_group(group, "values")]))


def distinct_share(rule: Expectation, _schema: StructType) -> FusedRule:
    """How many values a column has, as a share of its rows that have one."""
    group, judge = (rule.arguments["column"],), number_between(rule.arguments)

    def share(facts: Facts) -> Judgement:
        values, rows = facts[of_group(group, "values")], facts[of_group(group, "rows")]
        return judge(values / rows if rows else 0)

    return FusedRule(Figures(groups=frozenset({group})), share)


def row_count(rule: Expectation, _schema: StructType) -> FusedRule:
    """How many rows the table has."""
    judge = whole_between(rule.arguments)
    bounds: list[Any] = [rule.arguments.get(key) for key in ("min_value", "max_value")]
    if None not in bounds and bounds[0] > bounds[1]:
        raise NotFusedError("Great Expectations takes no such bounds of this rule")
    return of_one_figure(ROWS, F.count(F.lit(1)), judge)


def row_count_equal(rule: Expectation, _schema: StructType) -> FusedRule:
    """Whether the table has exactly so many rows."""
    value = rule.arguments["value"]
    return of_one_figure(ROWS, F.count(F.lit(1)), whole_between({"min_value": value, "max_value": value}))


def mean(rule: Expectation, schema: StructType) -> FusedRule:
    """A column's mean."""
    column = rule.arguments["column"]
    if not isinstance(schema[column].dataType, DecimalType | IntegerType | LongType | DoubleType | FloatType):
        raise NotFusedError(f"{column} has no mean")
    return of_one_figure(f"mean of {column}", F.mean(column), number_between(rule.arguments))


def total(rule: Expectation, schema: StructType) -> FusedRule:
    """A column's sum."""
    column, kind = rule.arguments["column"], schema[rule.arguments["column"]].dataType
    if not isinstance(kind, NumericType):
        raise NotFusedError(f"{column} has no sum")
    # A sum of whole numbers could be too large for one; that must not fail the query, and with it all other rules.
    is_whole = isinstance(kind, ByteType | ShortType | IntegerType | LongType)
    summed = F.sum(F.col(column).cast("double") if is_whole else F.col(column))
    return of_one_figure(f"sum of {column}", summed, number_between(rule.arguments))


def least(rule: Expectation, schema: StructType) -> FusedRule:
    """A column's least value."""
    return _extreme("least", F.min(rule.arguments["column"]), rule, schema)


def greatest(rule: Expectation, schema: StructType) -> FusedRule:
    """A column's greatest value."""
    return _extreme("greatest", F.max(rule.arguments["column"]), rule, schema)


def _extreme(word: str, found: Column, rule: Expectation, schema: StructType) -> FusedRule:
    column = rule.arguments["column"]
    kind = schema[column].dataType
    if isinstance(kind, TimestampType):
        # As a number: PySpark gives moments in the zone of the process.
        return of_one_figure(f"{word} {column}", F.unix_micros(found), moment_between(rule.arguments))
    return of_one_figure(f"{word} {column}", found, _judge_of(kind, rule))


def _judge_of(kind: DataType, rule: Expectation) -> Judge:
    if isinstance(kind, NumericType):
        return number_between(rule.arguments)
    if isinstance(kind, DateType):
        return date_between(rule.arguments)
    raise NotFusedError(f"the bounds of {kind.simpleString()} are read in Great Expectations' own way")


def column_exists(rule: Expectation, schema: StructType) -> FusedRule:
    """Whether there is a column, at a place if one is stated."""
    column, index = rule.arguments["column"], rule.arguments.get("column_index")
    # Great Expectations takes the first place for none at all.
    at_place = schema.names[index : index + 1 or None] if index else schema.names
    return _of_columns(Judgement(column in at_place))


def column_count(rule: Expectation, schema: StructType) -> FusedRule:
    """How many columns there are."""
    return _of_columns(whole_between(rule.arguments)(len(_plain_columns(schema))))


def column_set(rule: Expectation, schema: StructType) -> FusedRule:
    """Whether just these columns are there, or at least these."""
    there, wanted = set(_plain_columns(schema)), set(rule.arguments["column_set"])
    is_exact = rule.arguments.get("exact_match", True)
    return _of_columns(observed(there == wanted if is_exact else wanted <= there, sorted(there)))


def _of_columns(judgement: Judgement) -> FusedRule:
    return FusedRule(Figures(), lambda _: judgement)


def _plain_columns(schema: StructType) -> list[str]:
    if any(isinstance(field.dataType, StructType) for field in schema):
        raise NotFusedError("Great Expectations counts nested fields as columns")
    return schema.names

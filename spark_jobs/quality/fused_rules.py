"""Table rules compiled to figures of one pass, each with the verdict that Great Expectations would give on them.

What it would say of odd values is kept to: NULL fails no rule but `expect_column_values_to_not_be_null`, an empty table
has no figure, and no figure lies nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

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

from include.contracts.expectation import ROW_EXPECTATIONS, Expectation
from include.contracts.expectation_arguments import ARGUMENTS
from include.errors import SpecError
from spark_jobs.quality.figure_bounds import (
    Judge,
    NotFusedError,
    date_between,
    moment_between,
    number_between,
    whole_between,
)
from spark_jobs.quality.judgement import Judgement, counted, observed
from spark_jobs.quality.one_pass import Facts, Figures, Group, of_group
from spark_jobs.quality.row_rules import fails

ROWS = "rows"
"""The figure that every rule with a share needs."""


@dataclass(frozen=True)
class Sampled:
    """What a failed rule shows of the rows that fail it.

    Attributes:
        value: what is shown of a failing row, or of a combination that several rows share.
        failing: true for a row that fails.
        group: instead, the columns whose combinations may occur only once.
    """

    value: Column
    failing: Column | None = None
    group: Group = ()


@dataclass(frozen=True)
class FusedRule:
    """A rule as figures.

    Attributes:
        figures: what it needs to know.
        judge: its verdict on them.
        sampled: what it shows when it failed; None where there is nothing to show.
    """

    figures: Figures
    judge: Callable[[Facts], Judgement]
    sampled: Sampled | None = None


Compile: TypeAlias = Callable[[Expectation, StructType], FusedRule]


def fused(rule: Expectation, schema: StructType) -> FusedRule | None:
    """The rule as figures of a frame of this schema; None for one that Great Expectations has to judge.

    That are rules on values that it compares in a way of its own, such as the least of texts, and rules whose arguments
    are wrong, of which it says why.
    """
    takes = ARGUMENTS[rule.name]
    is_well_formed = set(takes.required) <= set(rule.arguments) <= set(takes.known)
    if not is_well_formed or rule.name not in COMPILERS:
        return None
    try:
        return COMPILERS[rule.name](rule, schema)
    except (NotFusedError, SpecError):
        return None


def _row_rule(rule: Expectation, _schema: StructType) -> FusedRule:
    if rule.arguments.get("value_set", ["any"]) == []:
        raise NotFusedError("there is nothing in the set")
    failing, mostly = fails(_of_each_row(rule)), _mostly(rule)
    figure = f"failing {rule.name} {_of_each_row(rule).arguments}"
    considered, of_considered = _considered(rule)
    flat = {ROWS: F.count(F.lit(1)), figure: F.count_if(failing), considered: of_considered}
    shown = None if rule.name == "expect_column_values_to_not_be_null" else Sampled(_value(rule), failing)
    return FusedRule(Figures(flat), partial(_share_of_rows, mostly, figure, considered), shown)


def _of_each_row(rule: Expectation) -> Expectation:
    return rule.model_copy(
        update={"arguments": {key: value for key, value in rule.arguments.items() if key != "mostly"}}
    )


def _considered(rule: Expectation) -> tuple[str, Column]:
    """The rows of which `mostly` is a share: those with a value, for rules on values."""
    if rule.name.endswith("_be_null"):
        return ROWS, F.count(F.lit(1))
    columns = [rule.arguments[key] for key in ("column", "column_A", "column_B") if key in rule.arguments]
    return f"with {' or '.join(columns)}", F.count(F.coalesce(*map(_presence, columns)))


def _presence(column: str) -> Column:
    return F.when(F.col(column).isNotNull(), F.lit(1))


def _value(rule: Expectation) -> Column:
    if "column" in rule.arguments:
        return F.col(rule.arguments["column"])
    pair = (rule.arguments["column_A"], rule.arguments["column_B"])
    return F.struct(*pair)


def _share_of_rows(mostly: float, failing: str, considered: str, facts: Facts) -> Judgement:
    count, among = facts[failing], facts[considered]
    return counted(among == 0 or (among - count) / among >= mostly, facts[ROWS], count)


def _mostly(rule: Expectation) -> float:
    mostly = rule.arguments.get("mostly", 1)
    if isinstance(mostly, bool) or not isinstance(mostly, int | float) or not 0 <= mostly <= 1:
        raise NotFusedError(f"{mostly!r} is no share")
    return float(mostly)


def _unique(rule: Expectation, _schema: StructType) -> FusedRule:
    columns = tuple(rule.arguments.get("column_list") or (rule.arguments["column"],))
    flat = {ROWS: F.count(F.lit(1))}
    judge = partial(_share_of_rows, _mostly(rule), of_group(columns, "repeated"), of_group(columns, "rows"))
    value = F.col(columns[0]) if "column" in rule.arguments else F.struct(*dict.fromkeys(columns))
    return FusedRule(Figures(flat, frozenset({columns})), judge, Sampled(value, group=columns))


def _distinct_in_set(rule: Expectation, schema: StructType) -> FusedRule:
    as_rows = rule.model_copy(update={"name": "expect_column_values_to_be_in_set"})
    of_rows = _row_rule(as_rows, schema)

    def judge(facts: Facts) -> Judgement:
        # The values are what fails, not the rows that have them.
        return Judgement(of_rows.judge(facts).passed)

    return FusedRule(of_rows.figures, judge, of_rows.sampled)


def _distinct_count(rule: Expectation, _schema: StructType) -> FusedRule:
    group, judge = (rule.arguments["column"],), whole_between(rule.arguments)
    return FusedRule(Figures(groups=frozenset({group})), lambda facts: judge(facts[of_group(group, "values")]))


def _distinct_share(rule: Expectation, _schema: StructType) -> FusedRule:
    group, judge = (rule.arguments["column"],), number_between(rule.arguments)

    def share(facts: Facts) -> Judgement:
        values, rows = facts[of_group(group, "values")], facts[of_group(group, "rows")]
        return judge(values / rows if rows else 0)

    return FusedRule(Figures(groups=frozenset({group})), share)


def _row_count(rule: Expectation, _schema: StructType) -> FusedRule:
    judge = whole_between(rule.arguments)
    bounds: list[Any] = [rule.arguments.get(key) for key in ("min_value", "max_value")]
    if None not in bounds and bounds[0] > bounds[1]:
        raise NotFusedError("Great Expectations takes no such bounds of this rule")
    return _of_one_figure(ROWS, F.count(F.lit(1)), judge)


def _row_count_equal(rule: Expectation, _schema: StructType) -> FusedRule:
    value = rule.arguments["value"]
    return _of_one_figure(ROWS, F.count(F.lit(1)), whole_between({"min_value": value, "max_value": value}))


def _mean(rule: Expectation, schema: StructType) -> FusedRule:
    column = rule.arguments["column"]
    if not isinstance(schema[column].dataType, DecimalType | IntegerType | LongType | DoubleType | FloatType):
        raise NotFusedError(f"{column} has no mean")
    return _of_one_figure(f"mean of {column}", F.mean(column), number_between(rule.arguments))


def _sum(rule: Expectation, schema: StructType) -> FusedRule:
    column, kind = rule.arguments["column"], schema[rule.arguments["column"]].dataType
    if not isinstance(kind, NumericType):
        raise NotFusedError(f"{column} has no sum")
    # A sum of whole numbers could be too large for one; that must not fail the query, and with it all other rules.
    is_whole = isinstance(kind, ByteType | ShortType | IntegerType | LongType)
    summed = F.sum(F.col(column).cast("double") if is_whole else F.col(column))
    return _of_one_figure(f"sum of {column}", summed, number_between(rule.arguments))


def _least(rule: Expectation, schema: StructType) -> FusedRule:
    return _extreme("least", F.min(rule.arguments["column"]), rule, schema)


def _greatest(rule: Expectation, schema: StructType) -> FusedRule:
    return _extreme("greatest", F.max(rule.arguments["column"]), rule, schema)


def _extreme(word: str, found: Column, rule: Expectation, schema: StructType) -> FusedRule:
    column = rule.arguments["column"]
    kind = schema[column].dataType
    if isinstance(kind, TimestampType):
        # As a number: PySpark gives moments in the zone of the process.
        return _of_one_figure(f"{word} {column}", F.unix_micros(found), moment_between(rule.arguments))
    return _of_one_figure(f"{word} {column}", found, _judge_of(kind, rule))


def _judge_of(kind: DataType, rule: Expectation) -> Judge:
    if isinstance(kind, NumericType):
        return number_between(rule.arguments)
    if isinstance(kind, DateType):
        return date_between(rule.arguments)
    raise NotFusedError(f"the bounds of {kind.simpleString()} are read in Great Expectations' own way")


def _of_one_figure(name: str, figure: Column, judge: Judge) -> FusedRule:
    return FusedRule(Figures({name: figure}), lambda facts: judge(facts[name]))


def _column_exists(rule: Expectation, schema: StructType) -> FusedRule:
    column, index = rule.arguments["column"], rule.arguments.get("column_index")
    # Great Expectations takes the first place for none at all.
    at_place = schema.names[index : index + 1 or None] if index else schema.names
    return _of_columns(Judgement(column in at_place))


def _column_count(rule: Expectation, schema: StructType) -> FusedRule:
    return _of_columns(whole_between(rule.arguments)(len(_plain_columns(schema))))


def _column_set(rule: Expectation, schema: StructType) -> FusedRule:
    there, wanted = set(_plain_columns(schema)), set(rule.arguments["column_set"])
    is_exact = rule.arguments.get("exact_match", True)
    return _of_columns(observed(there == wanted if is_exact else wanted <= there, sorted(there)))


def _of_columns(judgement: Judgement) -> FusedRule:
    return FusedRule(Figures(), lambda _: judgement)


def _plain_columns(schema: StructType) -> list[str]:
    if any(isinstance(field.dataType, StructType) for field in schema):
        raise NotFusedError("Great Expectations counts nested fields as columns")
    return schema.names


COMPILERS: dict[str, Compile] = {
    **dict.fromkeys(ROW_EXPECTATIONS, _row_rule),
    "expect_column_values_to_be_unique": _unique,
    "expect_compound_columns_to_be_unique": _unique,
    "expect_column_distinct_values_to_be_in_set": _distinct_in_set,
    "expect_column_unique_value_count_to_be_between": _distinct_count,
    "expect_column_proportion_of_unique_values_to_be_between": _distinct_share,
    "expect_table_row_count_to_be_between": _row_count,
    "expect_table_row_count_to_equal": _row_count_equal,
    "expect_column_mean_to_be_between": _mean,
    "expect_column_sum_to_be_between": _sum,
    "expect_column_min_to_be_between": _least,
    "expect_column_max_to_be_between": _greatest,
    "expect_column_to_exist": _column_exists,
    "expect_table_column_count_to_be_between": _column_count,
    "expect_table_columns_to_match_set": _column_set,
}
"""Expectation -> how it becomes figures."""

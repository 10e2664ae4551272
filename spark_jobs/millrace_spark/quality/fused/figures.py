"""Table rules on one figure of the table or of a column, and rules on which columns there are."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NumericType,
    StructType,
    TimestampType,
)

from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.fused.adjustments import (
    GREATEST,
    LEAST,
    TOTAL,
    Facts,
    total_within,
)
from millrace_spark.quality.fused.groups import group_figure
from millrace_spark.quality.fused.one_pass import Figures
from millrace_spark.quality.fused.rule import ROWS, FusedRule, single_figure_rule
from millrace_spark.quality.rules.figure_bounds import NotFusedError, between, day, moment_between, number, whole
from millrace_spark.quality.verdicts.rule_result import RuleResult

_DIGITS = 38
"""The most digits of Spark's decimals, before and after the point."""

_DIGITS_OF_SUM = 10
"""The digits that Spark's sum has more than its decimals, as far as there are so many."""


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
    return single_figure_rule(ROWS, F.count(F.lit(1)), TOTAL, compare)


def row_count_equal(rule: Expectation, _schema: StructType) -> FusedRule:
    """Compile a rule on the exact number of rows of the table."""
    value = rule.arguments["value"]
    compare = between({"min_value": value, "max_value": value}, whole)
    return single_figure_rule(ROWS, F.count(F.lit(1)), TOTAL, compare)


def mean(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule on a column's mean."""
    column, kind = rule.arguments["column"], schema[rule.arguments["column"]].dataType
    if not isinstance(kind, NumericType):
        raise NotFusedError(f"{column} has no mean")
    compare = between(rule.arguments, number)

    def evaluate(facts: Facts) -> RuleResult:
        total, values = facts[_sum_name(column)], facts[_values_name(column)]
        if not values:
            return compare(None)
        if total is None:
            return _too_long(column)
        return compare(_decimal_mean(total, values, kind) if isinstance(kind, DecimalType) else total / values)

    return FusedRule(_sum(column, kind), evaluate)


def total(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule on a column's sum."""
    column, kind = rule.arguments["column"], schema[rule.arguments["column"]].dataType
    if not isinstance(kind, NumericType):
        raise NotFusedError(f"{column} has no sum")
    compare = between(rule.arguments, number)

    def evaluate(facts: Facts) -> RuleResult:
        total, values = facts[_sum_name(column)], facts[_values_name(column)]
        if not values:
            return compare(None)
        return _too_long(column) if total is None else compare(float(total))

    return FusedRule(_sum(column, kind), evaluate)


def _sum(column: str, kind: DataType) -> Figures:
    """Return the figures of a column's sum, and of the number of its values; the sum counts only if there are any."""
    name, values, magnitude = _sum_name(column), _values_name(column), f"magnitude of {column}"
    flat, adjust = {values: F.count(column)}, {values: TOTAL}
    by_magnitude = dict.fromkeys((name, magnitude), total_within(magnitude))
    if isinstance(kind, DecimalType):
        flat |= {name: F.try_sum(column)}  # A sum with more digits must not fail all other rules.
        if kind.precision + _DIGITS_OF_SUM <= _DIGITS:
            return Figures(flat, adjust={**adjust, name: TOTAL})
        # A sum may overflow in between in one order of the rows, and not in another. It cannot as long as all values
        # together have fewer than `EXACT_BELOW` parts of this size: nine tenths of the greatest decimal.
        parts = F.ceil(F.abs(F.col(column)).cast("double") / 10.0 ** (_DIGITS - 16 - kind.scale))
        return Figures({**flat, magnitude: F.sum(parts.cast("double"))}, adjust={**adjust, **by_magnitude})
    # A sum of whole numbers could overflow, which must not fail the query and with it all other rules.
    summed = F.col(column).cast("double")
    flat |= {name: F.sum(summed)}
    if isinstance(kind, DoubleType | FloatType):
        return Figures(flat, adjust=adjust)  # The sum of doubles depends on their order.
    flat |= {magnitude: F.sum(F.abs(summed))}
    return Figures(flat, adjust={**adjust, **by_magnitude})


def _too_long(column: str) -> RuleResult:
    return RuleResult(False, error=f"the sum of {column} has more than {_DIGITS} digits")


def _sum_name(column: str) -> str:
    return f"sum of {column}"


def _values_name(column: str) -> str:
    return f"with {column}"


def _decimal_mean(total: Decimal, values: int, kind: DecimalType) -> Decimal:
    """Return the mean with the digits that Spark gives it."""
    with localcontext(prec=100, rounding=ROUND_HALF_UP):
        return (total / values).quantize(Decimal(1).scaleb(-min(kind.scale + 4, _DIGITS)))


def extreme(word: str, rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule on a column's `least` or `greatest` value, which is the `word`."""
    column = rule.arguments["column"]
    value, adjustment = (F.min(column), LEAST) if word == "least" else (F.max(column), GREATEST)
    name, kind = f"{word} {column}", schema[column].dataType
    if isinstance(kind, IntegralType | DateType):
        adjustment = replace(adjustment, column=column)  # Delta's statistics shorten other values, or round them.
    if isinstance(kind, TimestampType):
        # As a number, because PySpark returns moments in the zone of the process.
        return single_figure_rule(name, F.unix_micros(value), adjustment, moment_between(rule.arguments))
    if isinstance(kind, NumericType):
        return single_figure_rule(name, value, adjustment, between(rule.arguments, number))
    if isinstance(kind, DateType):
        return single_figure_rule(name, value, adjustment, between(rule.arguments, day))
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

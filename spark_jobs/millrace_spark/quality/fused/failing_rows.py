"""Table rules that count failing rows: rows that fail a condition, and rows whose values occur more than once."""

from __future__ import annotations

from functools import partial

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millrace.contracts.spec.expectation import Expectation
from millrace.sql.expression import expression_of
from millrace_spark.quality.fused.adjustments import TOTAL, Facts
from millrace_spark.quality.fused.groups import group_figure
from millrace_spark.quality.fused.one_pass import Figures
from millrace_spark.quality.fused.rule import ROWS, FusedRule, Samples
from millrace_spark.quality.rules.bounds import literal
from millrace_spark.quality.rules.figure_bounds import NotFusedError
from millrace_spark.quality.rules.row_rules import fails
from millrace_spark.quality.verdicts.rule_result import RuleResult


def row_rule(rule: Expectation, _schema: StructType) -> FusedRule:
    """Compile a rule on single rows: count the rows that fail it, and the rows that it considers."""
    if rule.arguments.get("value_set", ["any"]) == []:
        raise NotFusedError("the set is empty")
    arguments = {key: value for key, value in rule.arguments.items() if key != "mostly"}
    failing, mostly = fails(rule.model_copy(update={"arguments": arguments})), _mostly(rule)
    figure = f"failing {rule.name} {arguments}"
    columns = [rule.arguments[key] for key in ("column", "column_A", "column_B") if key in rule.arguments]
    if rule.name.endswith("_be_null"):
        considered, count = ROWS, F.count(F.lit(1))
    else:  # `mostly` is a share of the rows with a value
        has_value = F.coalesce(*(F.when(F.col(column).isNotNull(), F.lit(1)) for column in columns))
        considered, count = f"with {' or '.join(columns)}", F.count(has_value)
    flat = {ROWS: F.count(F.lit(1)), figure: F.count_if(failing), considered: count}
    value = F.struct(*columns) if len(columns) > 1 else F.col(columns[0])
    samples = None if rule.name == "expect_column_values_to_not_be_null" else Samples(value, failing)
    return FusedRule(
        Figures(flat, adjust=dict.fromkeys(flat, TOTAL)), partial(_share_of_rows, mostly, figure, considered), samples
    )


def sql_rule(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule that a condition in SQL is not false; NULL is no failure, and no part of the share `mostly`."""
    condition = rule.arguments["condition"]
    sql = expression_of(condition)
    failing, figure = fails(rule.model_copy(update={"arguments": {"condition": condition}})), f"failing {condition}"
    considered = f"with a value of {condition}"
    flat = {ROWS: F.count(F.lit(1)), figure: F.count_if(failing), considered: F.count(F.expr(condition))}
    # A name has parts: an alias before the column, or fields of a struct after it.
    named = {part.lower() for name in sql.columns for part in name}
    columns = [column for column in schema.names if column.lower() in named]
    # As text, because values of any type have an order then.
    value = F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})
    evaluate = partial(_share_of_rows, _mostly(rule), figure, considered)
    followed = flat if sql.follows_from_row else {ROWS}
    return FusedRule(
        Figures(flat, adjust=dict.fromkeys(followed, TOTAL)), evaluate, Samples(value, failing) if columns else None
    )


def _share_of_rows(mostly: float, failing: str, considered: str, facts: Facts) -> RuleResult:
    count, rows = facts[failing], facts[considered]
    passed = rows == 0 or (rows - count) / rows >= mostly
    return RuleResult(passed, {"element_count": facts[ROWS], "unexpected_count": count})


def _mostly(rule: Expectation) -> float:
    mostly = rule.arguments.get("mostly", 1)
    if isinstance(mostly, bool) or not isinstance(mostly, int | float) or not 0 <= mostly <= 1:
        raise NotFusedError(f"{mostly!r} is not a share")
    return float(mostly)


def unique(rule: Expectation, _schema: StructType) -> FusedRule:
    """Compile a rule on the rows that share their value, or combination of values, with other rows."""
    columns = tuple(rule.arguments.get("column_list") or (rule.arguments["column"],))
    flat = {ROWS: F.count(F.lit(1))}
    evaluate = partial(_share_of_rows, _mostly(rule), group_figure(columns, "repeated"), group_figure(columns, "rows"))
    value = F.col(columns[0]) if "column" in rule.arguments else F.struct(*dict.fromkeys(columns))
    return FusedRule(
        Figures(flat, frozenset({columns}), dict.fromkeys(flat, TOTAL)), evaluate, Samples(value, group=columns)
    )


def distinct_in_set(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule that every value of a column is in a set."""
    of_rows = row_rule(rule.model_copy(update={"name": "expect_column_values_to_be_in_set"}), schema)
    # Values fail this rule, not rows: the result has no row counts.
    return FusedRule(of_rows.figures, lambda facts: RuleResult(of_rows.evaluate(facts).passed), of_rows.samples)


def distinct_contain_set(rule: Expectation, _schema: StructType) -> FusedRule:
    """Compile a rule that each value of a set occurs in a column."""
    column, values = rule.arguments["column"], rule.arguments["value_set"]
    figures = [f"rows with {value!r} in {column}" for value in values]

    def evaluate(facts: Facts) -> RuleResult:
        missing = [value for value, figure in zip(values, figures, strict=True) if not facts[figure]]
        return RuleResult(not missing, {"observed_value": {"missing": missing} if missing else None})

    counts = [F.count_if(F.col(column) == literal(value)) for value in values]
    flat = dict(zip(figures, counts, strict=True))
    return FusedRule(Figures(flat, adjust=dict.fromkeys(flat, TOTAL)), evaluate)


def distinct_equal_set(rule: Expectation, schema: StructType) -> FusedRule:
    """Compile a rule that the values of a column are exactly those of a set."""
    within, all_of = distinct_in_set(rule, schema), distinct_contain_set(rule, schema)

    def evaluate(facts: Facts) -> RuleResult:
        missing = all_of.evaluate(facts)
        return RuleResult(within.evaluate(facts).passed and missing.passed, missing.details)

    of_both = (within.figures, all_of.figures)
    flat = {name: figure for figures in of_both for name, figure in figures.flat.items()}
    return FusedRule(Figures(flat, adjust=dict.fromkeys(flat, TOTAL)), evaluate, within.samples)

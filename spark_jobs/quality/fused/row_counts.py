"""Table rules that count rows: those that fail a predicate, and those whose values occur more than once."""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.fused.one_pass import Facts, Figures, of_group
from spark_jobs.quality.fused.rule import ROWS, FusedRule, Sampled
from spark_jobs.quality.rules.figure_bounds import NotFusedError
from spark_jobs.quality.rules.row_rules import fails
from spark_jobs.quality.verdicts.judgement import Judgement, counted


def row_rule(rule: Expectation, _schema: StructType) -> FusedRule:
    """The rows that fail a rule on single rows, and the rows among which they are counted."""
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


def unique(rule: Expectation, _schema: StructType) -> FusedRule:
    """The rows whose value, or combination of values, others have too."""
    columns = tuple(rule.arguments.get("column_list") or (rule.arguments["column"],))
    flat = {ROWS: F.count(F.lit(1))}
    judge = partial(_share_of_rows, _mostly(rule), of_group(columns, "repeated"), of_group(columns, "rows"))
    value = F.col(columns[0]) if "column" in rule.arguments else F.struct(*dict.fromkeys(columns))
    return FusedRule(Figures(flat, frozenset({columns})), judge, Sampled(value, group=columns))


def distinct_in_set(rule: Expectation, schema: StructType) -> FusedRule:
    """Whether every value that occurs is one of a set."""
    as_rows = rule.model_copy(update={"name": "expect_column_values_to_be_in_set"})
    of_rows = row_rule(as_rows, schema)

    def judge(facts: Facts) -> Judgement:
        # The values are what fails, not the rows that have them.
        return Judgement(of_rows.judge(facts).passed)

    return FusedRule(of_rows.figures, judge, of_rows.sampled)

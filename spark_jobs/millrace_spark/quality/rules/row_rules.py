"""Row rules compiled to columns: the pass that writes a batch also finds which rules of a spec each row fails.

A compiled rule gives the result that Great Expectations would give: NULL fails no rule except
`expect_column_values_to_not_be_null`, NaN is greater than every number, and bounds are compared as doubles.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millrace.contracts.spec.expectation import Action, Expectation
from millrace.contracts.spec.expectation_arguments import ARGUMENTS, SQL
from millrace.errors import SpecError
from millrace_spark.quality.rules.bounds import Bound, is_outside, length_bound, literal, value_bound
from millrace_spark.quality.rules.fit import unfit_causes
from millrace_spark.quality.rules.row_clock import with_clock_column

REFUSALS = "_refusals"
"""The column of the rules that a row fails; an empty array for a row that fails none."""

REFUSALS_TYPE = "array<struct<rule:string,action:string,reason:string>>"


def require_fit(schema: StructType, rules: Sequence[Expectation]) -> None:
    """Refuse rules that cannot be evaluated on a frame of this schema.

    Raises:
        SpecError: with one line for each rule that names a missing column, or compares a column with another kind.
    """
    if wrong := [f"{rule.rule}: {cause}" for rule in rules for cause in unfit_causes(schema, rule)]:
        raise SpecError("\n".join(wrong))


def refusals(rules: Sequence[Expectation]) -> Column:
    """Return the rules that a row fails, in their order, as `array<struct<rule, action, reason>>`; never NULL.

    A rule reads the clock in the row's column `CLOCK`.

    Raises:
        SpecError: a rule cannot be evaluated on a single row as it is written.
    """
    none = F.array().cast(REFUSALS_TYPE)
    if not rules:
        return none
    failed = [(fails(_by_clock_of_row(rule)), rule) for rule in rules]
    each = [F.when(failure, refusal(rule.rule, rule.action, rule.reason)) for failure, rule in failed]
    refused = F.array_compact(F.array(*each))
    # Most rows fail nothing: for them Spark runs only the generated code of the condition, not the interpreted array.
    return F.when(reduce(operator.or_, [failure for failure, _ in failed]), refused.cast(REFUSALS_TYPE)).otherwise(none)


def _by_clock_of_row(rule: Expectation) -> Expectation:
    if rule.name != SQL:
        return rule
    arguments = {**rule.arguments, "condition": with_clock_column(rule.arguments["condition"])}
    return rule.model_copy(update={"arguments": arguments})


def refusal(rule: str, action: Action, reason: str | Column) -> Column:
    """Return one refusal of a row, an element of `REFUSALS`."""
    parts = {"rule": rule, "action": action.value, "reason": reason}
    return F.struct(*(F.lit(part).alias(name) for name, part in parts.items()))


def fails(rule: Expectation) -> Column:
    """Return true for a row that fails `rule`, else false; never NULL.

    Raises:
        SpecError: the rule cannot be evaluated on a single row as it is written.
    """
    _require_arguments(rule)
    try:
        return F.coalesce(_FAILURES[rule.name](**rule.arguments), F.lit(False))
    except ValueError as error:
        raise SpecError(f"{rule.rule}: {error}") from error


def _outside(
    column: str,
    min_value: object = None,
    max_value: object = None,
    strict_min: bool = False,
    strict_max: bool = False,
    *,
    measure: Callable[[str], Column] = F.col,
    bound: Callable[[object], Bound] = value_bound,
) -> Column:
    return is_outside(measure(column), bound(min_value), bound(max_value), strict_min, strict_max)


def _is_in(column: str, value_set: Sequence[object]) -> Column:
    return F.col(column).isin([literal(value) for value in value_set])


_FAILURES: dict[str, Callable[..., Column]] = {
    "expect_column_values_to_not_be_null": lambda column: F.col(column).isNull(),
    "expect_column_values_to_be_null": lambda column: F.col(column).isNotNull(),
    "expect_column_values_to_be_between": _outside,
    "expect_column_values_to_be_in_set": lambda column, value_set: ~_is_in(column, value_set),
    "expect_column_values_to_not_be_in_set": _is_in,
    "expect_column_values_to_match_regex": lambda column, regex: ~F.col(column).rlike(regex),
    "expect_column_values_to_not_match_regex": lambda column, regex: F.col(column).rlike(regex),
    "expect_column_value_lengths_to_be_between": partial(_outside, measure=F.length, bound=length_bound),
    "expect_column_pair_values_a_to_be_greater_than_b": lambda column_A, column_B, or_equal=False: (
        F.col(column_A) < F.col(column_B) if or_equal else F.col(column_A) <= F.col(column_B)
    ),
    SQL: lambda condition: ~F.expr(condition),
}
"""Expectation -> function that returns a column: true for a row that fails it; false or NULL for other rows."""


def _require_arguments(rule: Expectation) -> None:
    if rule.name not in _FAILURES:
        raise SpecError(f"{rule.rule} checks a whole table and cannot refuse a row: use action warn or fail.")
    if "mostly" in rule.arguments:
        raise SpecError(
            f"{rule.rule}: mostly is the share of a table's rows that may fail, and action {rule.action} checks each "
            "row alone\nLeave mostly out, or use action warn or fail."
        )
    signature = ARGUMENTS[rule.name]
    given = set(rule.arguments)
    if given - set(signature.all_names) or set(signature.required) - given:
        raise SpecError(
            f"{rule.rule} takes {', '.join(signature.all_names)}; given are {', '.join(sorted(given)) or 'none'}."
        )

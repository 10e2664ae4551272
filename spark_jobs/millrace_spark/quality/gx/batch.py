"""Check rules with Great Expectations. The import takes seconds: import this only for a rule that needs it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import great_expectations as gx
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.datasource.fluent.interfaces import Batch
from great_expectations.exceptions import GreatExpectationsError
from great_expectations.expectations.expectation import Expectation as GxExpectation
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, DateType, DecimalType, StructType, TimestampType

from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.gx.classes import expectation_class
from millrace_spark.quality.rules.bounds import value_bound
from millrace_spark.quality.rules.conditions import require_readable
from millrace_spark.quality.verdicts.rule_result import RuleResult, one_line

MOST_COMMON = "expect_column_most_common_value_to_be_in_set"

BOOLEAN_ONLY = {"result_format": "BOOLEAN_ONLY"}
"""Results without details: about a third of the Spark jobs of a summary."""

SUMMARY = {"result_format": "SUMMARY", "partial_unexpected_count": 20}
"""Result, counts, observed value and some unexpected values, never all of them."""


def check_frame(df: DataFrame, rules: Sequence[Expectation]) -> tuple[RuleResult, ...]:
    """Check each rule with Great Expectations; return the results in the order of the rules.

    A first validation returns results without details; only rules that failed are validated again for the details.

    Args:
        df: the frame.
        rules: rules that fit its columns.

    Raises:
        PySparkException: the frame cannot be read at all.
    """
    rules = [with_python_values(rule, df.schema) for rule in rules]
    errors = {number: _argument_error(rule) for number, rule in enumerate(rules)}
    valid = {number: rule for number, rule in enumerate(rules) if not errors[number]}
    results = {number: RuleResult(False, error=error) for number, error in errors.items()}
    if valid:
        batch = _open_batch(df)
        first = _validate(batch, valid, BOOLEAN_ONLY)
        if any(result.error for result in first.values()):
            require_readable(df)
        for number, result in first.items():
            results[number] = result
            if not result.passed:
                # Alone, because Great Expectations also reports the error of one rule for others that it computes too.
                details = _validate(batch, {0: valid[number]}, SUMMARY)[0]
                results[number] = replace(details, passed=details.passed and bool(result.error))
    return tuple(results[number] for number in range(len(rules)))


def _argument_error(rule: Expectation) -> str:
    try:
        _expectation(rule, 0)
    except ValueError as error:  # also pydantic's errors
        return one_line(f"its arguments are wrong: {error}")
    return ""


def _open_batch(df: DataFrame) -> Batch:
    """Return the frame as a batch, in a context that leaves nothing behind and sends no reports."""
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)  # bars would fill the task log
    # Not persisted: caching all columns costs more than reading the few that the rules name, and would leak memory.
    source = context.data_sources.add_or_update_spark("spark", persist=False)
    whole = source.add_dataframe_asset("table").add_batch_definition_whole_dataframe("whole")
    return whole.get_batch(batch_parameters={"dataframe": df})


def _validate(batch: Batch, rules: Mapping[int, Expectation], result_format: dict[str, Any]) -> dict[int, RuleResult]:
    suite = gx.ExpectationSuite("rules", expectations=[_expectation(rule, number) for number, rule in rules.items()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            outcome = batch.validate(suite, result_format=result_format)
        except GreatExpectationsError as error:
            # As of a class of the project whose metric nobody defines: alone, each is blamed for its own error.
            if len(rules) == 1:
                return dict.fromkeys(rules, RuleResult(False, error=one_line(str(error)), is_raised=True))
            return {number: _validate(batch, {number: rule}, result_format)[number] for number, rule in rules.items()}
    # By the number in their meta, because results come in another order than the rules of the suite.
    configured = [(result, result.expectation_config) for result in outcome.results]
    results = {config.meta["number"]: _result(result) for result, config in configured if config and config.meta}
    return {number: results.get(number, RuleResult(False, error="it was not checked")) for number in rules}


def with_python_values(rule: Expectation, schema: StructType) -> Expectation:
    """Return the rule with its values as Spark returns those of its column, if they are compared in Python.

    There neither text equals a date, nor the double 0.1 the decimal 0.1.
    """
    if rule.name != MOST_COMMON or not isinstance(rule.arguments.get("value_set"), list):
        return rule
    kind = schema[rule.arguments["column"]].dataType
    values = [_python_value(value, kind) for value in rule.arguments["value_set"]]
    return rule.model_copy(update={"arguments": {**rule.arguments, "value_set": values}})


def _python_value(value: Any, kind: DataType) -> Any:
    if isinstance(kind, DecimalType) and isinstance(value, float):
        return Decimal(str(value))
    bound = value_bound(value) if isinstance(kind, DateType | TimestampType) else value
    if isinstance(kind, DateType) and isinstance(bound, datetime):
        # Spark compares a date with a moment as the begin of its day: only that moment equals a date.
        return bound.date() if bound.time() == time() else bound
    if isinstance(kind, TimestampType) and isinstance(bound, date):
        moment = bound if isinstance(bound, datetime) else datetime.combine(bound, time(), UTC)
        return moment.astimezone().replace(tzinfo=None)  # PySpark returns moments in the zone of the process.
    return bound


def _expectation(rule: Expectation, number: int) -> GxExpectation:
    return expectation_class(rule.name)(**rule.arguments, meta={"number": number})


def _result(result: ExpectationValidationResult) -> RuleResult:
    info = result.exception_info  # one entry, or a map of metric -> entry
    entries = [info] if "raised_exception" in info else info.values()
    messages = [entry["exception_message"] for entry in entries if entry["raised_exception"]]
    error = "; ".join(dict.fromkeys(one_line(str(text or "an exception without a message")) for text in messages))
    # A rule on quantiles has NumPy's True, which is not Python's; a class of the project may return anything.
    if result.success not in (True, False) and not error:
        error = f"Great Expectations gave {result.success!r} as its result, which is neither True nor False"
    passed = bool(result.success) and not error
    return RuleResult(passed, details=result.result, error=error, is_raised=bool(error))

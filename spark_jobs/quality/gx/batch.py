"""Great Expectations on one Spark frame. Importing this costs seconds: do it only where there is a rule."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import great_expectations as gx
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.datasource.fluent.interfaces import Batch
from great_expectations.expectations.expectation import Expectation as GxExpectation
from great_expectations.expectations.registry import get_expectation_impl
from pyspark.sql import DataFrame

from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.fused.one_pass import require_readable
from spark_jobs.quality.verdicts.judgement import Judgement
from spark_jobs.quality.verdicts.one_line import one_line

BOOLEAN_ONLY = {"result_format": "BOOLEAN_ONLY"}
"""Verdicts alone: about a third of the Spark jobs of a summary."""

SUMMARY = {"result_format": "SUMMARY", "partial_unexpected_count": 20}
"""Verdict, counts, observed value and some unexpected values, never all of them."""


def judge_frame(df: DataFrame, rules: Sequence[Expectation]) -> tuple[Judgement, ...]:
    """What Great Expectations says of each rule, in the order of the rules.

    A first look asks for verdicts alone; only a rule that did not pass gets a second one, for the details.

    Args:
        df: the frame.
        rules: rules that fit its columns.

    Raises:
        PySparkException: the frame cannot be read at all.
    """
    causes = {place: _wrong_arguments(rule) for place, rule in enumerate(rules)}
    sound = {place: rule for place, rule in enumerate(rules) if not causes[place]}
    found = {place: Judgement(False, error=cause) for place, cause in causes.items()}
    found.update(_two_looks(df, sound))
    return tuple(found[place] for place in range(len(rules)))


def _wrong_arguments(rule: Expectation) -> str:
    try:
        _expectation(rule, 0)
    except ValueError as error:  # which pydantic's errors are
        return one_line(f"its arguments are wrong: {error}")
    return ""


def _two_looks(df: DataFrame, rules: Mapping[int, Expectation]) -> dict[int, Judgement]:
    if not rules:
        return {}
    batch = _open_batch(df)
    looks = _judge(batch, rules, BOOLEAN_ONLY)
    if any(look.error for look in looks.values()):
        require_readable(df)
    return {place: look if look.passed else _look_again(batch, rules[place], look) for place, look in looks.items()}


def _look_again(batch: Batch, rule: Expectation, first: Judgement) -> Judgement:
    # Alone: Great Expectations also lays the error of one rule at the door of others that it computes along with it.
    second = _judge(batch, {0: rule}, SUMMARY)[0]
    was_blamed_for_another = bool(first.error)
    return replace(second, passed=second.passed and was_blamed_for_another)


def _open_batch(df: DataFrame) -> Batch:
    """The frame as a batch of its own, in a context that leaves nothing behind and reports to nobody."""
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)  # bars would flood the task log
    # Not persisted: caching every column costs more than reading the few that the rules name, and would leak.
    source = context.data_sources.add_or_update_spark("spark", persist=False)
    whole = source.add_dataframe_asset("table").add_batch_definition_whole_dataframe("whole")
    return whole.get_batch(batch_parameters={"dataframe": df})


def _judge(batch: Batch, rules: Mapping[int, Expectation], result_format: dict[str, Any]) -> dict[int, Judgement]:
    suite = gx.ExpectationSuite("rules", expectations=[_expectation(rule, place) for place, rule in rules.items()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = batch.validate(suite, result_format=result_format)
    judged = {_place(result): _judgement(result) for result in outcome.results}
    return {place: judged.get(place, Judgement(False, error="it was not judged at all")) for place in rules}


def _expectation(rule: Expectation, place: int) -> GxExpectation:
    return get_expectation_impl(rule.name)(**rule.arguments, meta={"place": place})


def _place(result: ExpectationValidationResult) -> int | None:
    """Results come back in another order than the suite's, so each is known by the place in its meta."""
    meta = result.expectation_config.meta if result.expectation_config else None
    return meta["place"] if meta else None


def _judgement(result: ExpectationValidationResult) -> Judgement:
    error = "; ".join(dict.fromkeys(_errors(result.exception_info)))
    if result.success is None and not error:
        error = "Great Expectations gave no verdict"
    return Judgement(passed=result.success is True and not error, details=result.result, error=error)


def _errors(info: Mapping[str, Any]) -> Iterator[str]:
    """The messages of `exception_info`, which is either one entry or a map of metric -> entry."""
    for entry in [info] if "raised_exception" in info else info.values():
        if entry["raised_exception"]:
            yield one_line(str(entry["exception_message"] or "an exception without a message"))

"""Suites: the table rules of a spec, judged by Great Expectations on one exact table version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from include.contracts.expectation import Expectation
from include.contracts.job_report import CheckResult
from spark_jobs.quality.json_safe import json_safe

if TYPE_CHECKING:
    from spark_jobs.quality.gx_batch import Judgement

MAX_SAMPLES = 5

_COLUMN_ARGUMENTS = {"column", "column_A", "column_B", "column_list"}


def judge(df: DataFrame, rules: Sequence[Expectation]) -> tuple[CheckResult, ...]:
    """What each rule says of `df`, one exact table version, in the order of the rules.

    A rule that passed is a bare verdict; one that did not also has counts, samples and the observed value. A rule that
    cannot be judged has not passed, and says why in `error`.

    Raises:
        Exception: Spark's own, when the version cannot be read at all: then no rule is to blame.
    """
    if not rules:
        return ()
    # Imported here, since Great Expectations takes seconds to import and many tables have no table rule.
    from spark_jobs.quality.gx_batch import judge_frame

    return tuple(map(_check, rules, judge_frame(df, rules)))


def _check(rule: Expectation, judgement: Judgement) -> CheckResult:
    details = judgement.details
    return CheckResult(
        rule=rule.rule,
        action=rule.action.value,
        passed=judgement.passed,
        reason=rule.reason,
        expected={key: json_safe(value) for key, value in rule.arguments.items() if key not in _COLUMN_ARGUMENTS},
        observed=json_safe(details.get("observed_value")),
        unexpected_rows=_unexpected_rows(details),
        samples=_samples(details.get("partial_unexpected_list") or ()),
        error=judgement.error,
    )


def _unexpected_rows(details: Mapping[str, Any]) -> int | None:
    # Without an element_count the unexpected are distinct values, not rows.
    return details.get("unexpected_count") if "element_count" in details else None


def _samples(values: Iterable[Any]) -> tuple[Any, ...]:
    different: list[Any] = []
    for value in map(json_safe, values):
        if value is not None and value not in different:
            different.append(value)
    return tuple(different[:MAX_SAMPLES])

"""Suites: the table rules of a spec, judged on one exact table version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from include.contracts.job.report import CheckResult
from include.contracts.spec.expectation import COMPARISONS, Expectation
from spark_jobs.quality.fused.comparisons import FRESH, compared, fresh
from spark_jobs.quality.fused.one_pass import all_figures, require_readable, worked_out
from spark_jobs.quality.fused.rule import FusedRule
from spark_jobs.quality.fused.rules import fused
from spark_jobs.quality.fused.samples import samples
from spark_jobs.quality.rules.fit import misfits
from spark_jobs.quality.verdicts.json_safe import json_safe
from spark_jobs.quality.verdicts.judged_version import JudgedVersion
from spark_jobs.quality.verdicts.judgement import Judgement

MAX_SAMPLES = 5

_COLUMN_ARGUMENTS = {"column", "column_A", "column_B", "column_list"}


def judge(df: DataFrame, rules: Sequence[Expectation], judged: JudgedVersion | None = None) -> tuple[CheckResult, ...]:
    """What each rule says of `df`, one exact table version, in the order of the rules.

    All rules that come down to figures are judged in one pass; Great Expectations judges the others, and is imported
    only for them. A rule that failed also has samples; one that cannot be judged has not passed, and says why in
    `error`.

    A rule with a narrower band is one check: of the band that fails where that was left, else of the one that warns.

    Args:
        df: the rows of the version.
        rules: the rules.
        judged: the version with what it can be held against; rules that compare it cannot be judged without.

    Raises:
        PySparkException: the version cannot be read at all: then no rule is to blame.
    """
    bands = [band for rule in rules for band in rule.bands]
    checks = iter(list(map(_check, bands, _judgements(df, bands, judged))))
    return tuple(_worst([next(checks) for _ in rule.bands]) for rule in rules)


def _worst(bands: Sequence[CheckResult]) -> CheckResult:
    """The first band that was left, the widest first; the widest where none was."""
    return next((check for check in bands if not check.passed), bands[0])


def _judgements(df: DataFrame, rules: Sequence[Expectation], judged: JudgedVersion | None) -> list[Judgement]:
    if not rules:
        return []
    schema = df.schema
    found = {place: said for place, rule in enumerate(rules) if (said := _beforehand(rule, schema, judged))}
    one_by_one = {place: _fused(rule, schema, judged) for place, rule in enumerate(rules) if place not in found}
    found |= _by_figures(df, {place: rule for place, rule in one_by_one.items() if rule})
    left = {place: rule for place, rule in enumerate(rules) if place not in found}
    if judged:
        found |= {place: compared(df, rule, judged) for place, rule in left.items() if rule.name in COMPARISONS}
    found |= _by_great_expectations(df, {place: rule for place, rule in left.items() if rule.name not in COMPARISONS})
    return [found[place] for place in range(len(rules))]


def _beforehand(rule: Expectation, schema: StructType, judged: JudgedVersion | None) -> Judgement | None:
    """Why a rule cannot be judged, as far as that can be said without reading a row."""
    if causes := misfits(schema, rule):
        return Judgement(False, error="; ".join(causes))
    if rule.name in COMPARISONS and judged is None:
        return Judgement(False, error="there is nothing to hold the rows against: they are no version of a table")
    return None


def _fused(rule: Expectation, schema: StructType, judged: JudgedVersion | None) -> FusedRule | None:
    if rule.name in COMPARISONS:
        return fresh(rule, schema, judged) if judged and rule.name == FRESH else None
    return fused(rule, schema)


def _by_figures(df: DataFrame, rules: Mapping[int, FusedRule]) -> dict[int, Judgement]:
    """The verdicts of one pass; none where a rule among them breaks it, such as a pattern that is none."""
    try:
        facts = worked_out(df, all_figures(rule.figures for rule in rules.values()))
        found = {place: rule.judge(facts) for place, rule in rules.items()}
        to_show = {place: rules[place].sampled for place, said in found.items() if not said.passed}
        shown = samples(df, {place: sampled for place, sampled in to_show.items() if sampled})
    except PySparkException:
        # Which rule it was is not said: each is judged alone, unless there is nothing to be judged.
        require_readable(df)
        return {}
    return {place: _with_samples(said, shown.get(place, [])) for place, said in found.items()}


def _with_samples(said: Judgement, values: list[Any]) -> Judgement:
    return replace(said, details={**said.details, "partial_unexpected_list": values}) if values else said


def _by_great_expectations(df: DataFrame, rules: Mapping[int, Expectation]) -> dict[int, Judgement]:
    if not rules:
        return {}
    # Imported here, since Great Expectations takes seconds to import and hardly a table needs it.
    from spark_jobs.quality.gx.batch import judge_frame

    return dict(zip(rules, judge_frame(df, list(rules.values())), strict=True))


def _check(rule: Expectation, judgement: Judgement) -> CheckResult:
    details = judgement.details
    return CheckResult(
        rule=rule.rule,
        action=rule.action.value,
        passed=judgement.passed,
        severity=rule.stated_severity.value,
        reason=rule.reason,
        expected={key: json_safe(value) for key, value in rule.arguments.items() if key not in _COLUMN_ARGUMENTS},
        observed=json_safe(details.get("observed_value")),
        unexpected_rows=_unexpected_rows(details),
        samples=_samples(details.get("partial_unexpected_list") or ()),
        error=judgement.error,
        not_judged=judgement.not_judged,
        against=judgement.against,
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

"""Suites: check the table rules of a spec on one exact table version."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from millrace.contracts.job.report import CheckResult
from millrace.contracts.restricted import RESTRICTED
from millrace.contracts.spec.expectation import Expectation
from millrace.contracts.spec.expectation_arguments import COMPARISONS, OWN_EXPECTATIONS, SQL
from millrace_spark.quality.fused.adjustments import Facts
from millrace_spark.quality.fused.change import VersionChange
from millrace_spark.quality.fused.comparisons import compare_version, compile_comparison
from millrace_spark.quality.fused.one_pass import ComputedFigures, compute_figures
from millrace_spark.quality.fused.rule import FusedRule
from millrace_spark.quality.fused.rules import compile_rule
from millrace_spark.quality.fused.samples import collect_samples
from millrace_spark.quality.rules.conditions import condition_error, require_readable
from millrace_spark.quality.rules.fit import unfit_causes
from millrace_spark.quality.verdicts.comparable_version import ComparableVersion
from millrace_spark.quality.verdicts.restricted_rules import NO_RESTRICTED_RULES, RestrictedRules
from millrace_spark.quality.verdicts.rule_result import ALL_ROWS, RuleResult, one_line
from millrace_spark.quality.verdicts.verdict import carried_check

MAX_SAMPLES = 5

_IN_RULE = {"column", "column_A", "column_B", "column_list", "condition", "query"}
"""The arguments that are part of `Expectation.rule`."""


def check_rules(
    df: DataFrame,
    rules: Sequence[Expectation],
    version: ComparableVersion | None = None,
    change: VersionChange | None = None,
    restricted: RestrictedRules = NO_RESTRICTED_RULES,
) -> tuple[tuple[CheckResult, ...], Facts]:
    """Check each rule on `df`, one exact table version.

    One pass evaluates all rules that need only figures; Great Expectations evaluates the other rules, and is imported
    only for them. Where figures follow from those of the last checked version and the rows that changed since, the pass
    reads these rows alone. The result of a failed rule also has samples. A rule that cannot be evaluated fails, and
    `error` says why.

    A rule with a narrower band gives one result: that of the band that fails, if it is violated, else of the band that
    warns.

    Returns:
        The results, in the order of the rules, and a last one if figures that followed from change to change are not
        those of all rows; and the figures with which the check of the next version can begin.

    Args:
        df: the rows of the version.
        rules: the rules.
        version: the version and what it can be compared with; rules that compare need it.
        change: what changed since the last checked version; None reads all rows for every rule.
        restricted: the columns whose values no result may have.

    Raises:
        PySparkException: the version cannot be read at all, which is no rule's fault.
    """
    bands = [band for rule in rules for band in rule.bands]
    evaluated, figures = _evaluate(df, bands, version, change, restricted)
    evaluated = list(map(restricted.masked, bands, evaluated))
    checks = map(_check, bands, evaluated)
    results = [[next(checks) for _ in rule.bands] for rule in rules]
    # The widest band is the first one.
    worst = (next((check for check in bands if not check.passed), bands[0]) for bands in results)
    return (*worst, *carried_check(figures.wrong)), figures.lasting


def _evaluate(
    df: DataFrame,
    rules: Sequence[Expectation],
    version: ComparableVersion | None,
    change: VersionChange | None,
    restricted: RestrictedRules,
) -> tuple[list[RuleResult], ComputedFigures]:
    if not rules:
        return [], ComputedFigures()
    schema = df.schema
    results: dict[int, RuleResult] = {}
    fused: dict[int, FusedRule] = {}
    for number, rule in enumerate(rules):
        if causes := unfit_causes(schema, rule):
            results[number] = RuleResult(False, error="; ".join(causes))
        elif rule.name in COMPARISONS and version is None:
            error = "the rows are not a version of a table: there is nothing to compare them with"
            results[number] = RuleResult(False, error=error)
        elif rule.name == SQL and (cause := condition_error(df, rule.arguments["condition"])):
            results[number] = RuleResult(False, error=cause)
        else:
            compiled = (
                compile_comparison(df, rule, version)
                if version and rule.name in COMPARISONS
                else compile_rule(rule, schema)
            )
            if isinstance(compiled, RuleResult):
                results[number] = compiled
            elif compiled:
                fused[number] = compiled
    by_figures, figures = _by_figures(df, fused, change)
    of_restricted = [rule for number, rule in fused.items() if restricted.is_read_by(rules[number])]
    hidden = {name: (RESTRICTED, RESTRICTED) for rule in of_restricted for name in rule.figures.names}
    wrong = {name: hidden.get(name, values) for name, values in figures.wrong.items()}
    results |= by_figures
    # Great Expectations knows none of these: alone, each is blamed for its own error.
    own = {number for number in fused.keys() - results.keys() if rules[number].name in OWN_EXPECTATIONS}
    results |= {number: _by_figures_alone(df, fused[number]) for number in own}
    others = {number: rule for number, rule in enumerate(rules) if number not in results}
    if version:
        comparisons = {number: rule for number, rule in others.items() if rule.name in COMPARISONS}
        results |= {number: compare_version(df, rule, version, restricted) for number, rule in comparisons.items()}
    remaining = {number: rule for number, rule in others.items() if rule.name not in COMPARISONS}
    results |= _by_great_expectations(df, remaining)
    return [results[number] for number in range(len(rules))], replace(figures, wrong=wrong)


def _by_figures(
    df: DataFrame, rules: Mapping[int, FusedRule], change: VersionChange | None
) -> tuple[dict[int, RuleResult], ComputedFigures]:
    """Return the results of one pass, and its figures; neither if one of the rules breaks it, as by a wrong pattern."""
    try:
        return _in_one_pass(df, rules, change)
    except PySparkException:
        if change:  # perhaps only the change feed cannot be read
            return _by_figures(df, rules, None)
        # Spark does not say which rule failed: the caller evaluates each rule alone, if the frame can be read.
        require_readable(df)
        return {}, ComputedFigures()
    except OverflowError:
        return {number: _by_figures_alone(df, rule) for number, rule in rules.items()}, ComputedFigures()


def _by_figures_alone(df: DataFrame, rule: FusedRule) -> RuleResult:
    try:
        return _in_one_pass(df, {0: rule}, None)[0][0]
    except OverflowError:  # Python has no such day
        return RuleResult(False, error="it computes a date or a time outside of the years 1 to 9999")
    except PySparkException as error:
        require_readable(df)
        return RuleResult(False, error=one_line(str(error)), is_raised=True)


def _in_one_pass(
    df: DataFrame, rules: Mapping[int, FusedRule], change: VersionChange | None
) -> tuple[dict[int, RuleResult], ComputedFigures]:
    figures = compute_figures(df, [rule.figures for rule in rules.values()], change)
    results = {
        number: replace(rule.evaluate(figures.facts), judged_by=_judged_by(rule, figures, change))
        for number, rule in rules.items()
    }
    samples = {number: rules[number].samples for number, result in results.items() if not result.passed}
    shown = {number: sampled for number, sampled in samples.items() if sampled}
    try:
        values = collect_samples(df, shown)
    except OverflowError:  # Python has no days outside of the years 1 to 9999, but their texts
        texts = {number: replace(sampled, value=sampled.value.cast("string")) for number, sampled in shown.items()}
        values = collect_samples(df, texts)
    for number, failing in values.items():
        if failing:
            details = {**results[number].details, "partial_unexpected_list": failing}
            results[number] = replace(results[number], details=details)
    return results, figures


def _judged_by(rule: FusedRule, figures: ComputedFigures, change: VersionChange | None) -> str:
    names = rule.figures.names
    if not names:
        return ""
    if not (change and names <= figures.adjusted):
        return ALL_ROWS
    others = sorted(reference.other for reference in rule.figures.references)
    return " and ".join([str(change), *(f"{other} version {change.judged.others[other].version}" for other in others)])


def _by_great_expectations(df: DataFrame, rules: Mapping[int, Expectation]) -> dict[int, RuleResult]:
    if not rules:
        return {}
    # Imported here: Great Expectations takes seconds to import, and few tables need it.
    from millrace_spark.quality.gx.batch import check_frame

    results = check_frame(df, list(rules.values()))
    return {number: replace(result, judged_by=ALL_ROWS) for number, result in zip(rules, results, strict=True)}


def _check(rule: Expectation, result: RuleResult) -> CheckResult:
    details = result.details
    return CheckResult(
        rule=rule.rule,
        action=rule.action.value,
        passed=result.passed,
        severity=rule.stated_severity.value,
        reason=rule.reason,
        expected={key: json_safe(value) for key, value in rule.arguments.items() if key not in _IN_RULE},
        observed=json_safe(details.get("observed_value")),
        # Without an element_count the unexpected are distinct values, not rows.
        unexpected_rows=details.get("unexpected_count") if "element_count" in details else None,
        samples=_samples(details.get("partial_unexpected_list") or ()),
        error=result.error,
        not_judged=result.not_judged,
        against=result.against,
        judged_by="" if result.error or result.not_judged else result.judged_by,
    )


def _samples(values: Iterable[Any]) -> tuple[Any, ...]:
    different: list[Any] = []
    for value in map(json_safe, values):
        if value is not None and value not in different:
            different.append(value)
    return tuple(different[:MAX_SAMPLES])


def json_safe(value: Any) -> Any:
    """Return `value` in JSON's own types, so that a report reads back as it was written.

    Dates and moments become ISO 8601, bytes become hexadecimal digits, NaN and the infinities become their names, and
    decimals and values of other types become text.

    >>> from decimal import Decimal
    >>> json_safe({"day": date(2013, 1, 31), "fares": [Decimal("1.50"), float("nan")], 7: b"ab"})
    {'day': '2013-01-31', 'fares': ['1.50', 'nan'], '7': '6162'}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_safe(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return json_safe(value.tolist())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)

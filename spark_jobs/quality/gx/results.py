"""Recorded gate results as those of Great Expectations, which it can draw. Importing this costs seconds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from html import escape
from typing import Any

import great_expectations as gx
from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.registry import get_expectation_impl

from include.contracts.job.report import CheckResult
from include.contracts.spec.expectation import COMPARISONS, Action
from include.control.gates.result import GateResult

_SEVERITY = {Action.FAIL: "critical", Action.WARN: "warning"}


def suite_result(
    result: GateResult, run_id: str, judged_at: datetime, rows: int | None
) -> ExpectationSuiteValidationResult:
    """What a gate said of one version, as Great Expectations would say it.

    Args:
        result: what it said; an overridden one has not succeeded. Rules whose arguments are wrong are left out, and so
            are those of Millrace's own, which Great Expectations cannot draw.
        run_id: the run, as the page names it.
        judged_at: when.
        rows: rows of the version, of which shares are given; None where nobody can tell any more.
    """
    checks = [_check(check, rows) for check in result.checks if _can_be_drawn(check)]
    return ExpectationSuiteValidationResult(
        success=result.passed and result.override is None,
        results=checks,
        suite_name=result.table,
        suite_parameters={},
        statistics=_statistics([check.passed for check in result.checks]),
        meta={
            "great_expectations_version": gx.__version__,
            "run_id": RunIdentifier(run_name=run_id, run_time=judged_at),
            "batch_spec": {"data_asset_name": f"version {result.version}"},
        },
    )


def _can_be_drawn(check: CheckResult) -> bool:
    """Whether Great Expectations knows it and takes its arguments: else it draws no page at all."""
    if _name(check) in COMPARISONS:
        return False
    try:
        get_expectation_impl(_name(check))(**_arguments(check))
    except ValueError:  # which pydantic's errors are
        return False
    return True


def _check(check: CheckResult, rows: int | None) -> ExpectationValidationResult:
    return ExpectationValidationResult(
        success=check.passed,
        expectation_config=ExpectationConfiguration(
            type=_name(check), kwargs=_arguments(check), severity=check.severity or _SEVERITY[Action(check.action)]
        ),
        result=_found(check, rows),
        exception_info={
            "raised_exception": bool(check.error),
            "exception_message": check.error,
            "exception_traceback": "",
        },
        meta={},
    )


def _name(check: CheckResult) -> str:
    return check.rule.partition("(")[0]


def _arguments(check: CheckResult) -> dict[str, Any]:
    """The rule's arguments; those that name columns are in what it is called, by their order."""
    columns = [column for column in check.rule.removesuffix(")").partition("(")[2].split(", ") if column]
    fields = get_expectation_impl(_name(check)).__fields__
    if "column_list" in fields:
        return {"column_list": columns, **check.expected}
    named = zip((key for key in ("column", "column_A", "column_B") if key in fields), columns, strict=False)
    return {**dict(named), **check.expected}


def _found(check: CheckResult, rows: int | None) -> dict[str, Any]:
    """What was found, with the share of all rows that it is, where both counts are known."""
    unexpected = check.unexpected_rows
    found: dict[str, Any] = {"partial_unexpected_list": list(map(_harmless, check.samples)), "unexpected_count": 0}
    if check.observed is not None:
        found["observed_value"] = _harmless(check.observed)
    if unexpected and rows:
        share = 100 * unexpected / rows
        return {**found, "unexpected_count": unexpected, "element_count": rows, "unexpected_percent": share}
    return {"observed_value": f"{unexpected} unexpected rows", **found} if unexpected else found


def _statistics(verdicts: Iterable[bool]) -> dict[str, Any]:
    every = list(verdicts)
    return {
        "evaluated_expectations": len(every),
        "successful_expectations": sum(every),
        "unsuccessful_expectations": len(every) - sum(every),
        "success_percent": 100 * sum(every) / len(every) if every else None,
    }


def _harmless(value: Any) -> Any:
    """`value` as text that is no markup: Great Expectations puts what was found into its pages as it is."""
    if isinstance(value, bool | int | float):
        return value
    return escape(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))

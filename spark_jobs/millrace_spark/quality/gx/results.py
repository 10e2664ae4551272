"""Convert recorded gate results to results that Great Expectations can render. The import takes seconds."""

from __future__ import annotations

from datetime import datetime
from html import escape
from typing import Any

import great_expectations as gx
from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

from millrace.contracts.counted import counted
from millrace.contracts.job.report import CheckResult
from millrace.contracts.restricted import RESTRICTED
from millrace.contracts.spec.expectation import Action
from millrace.contracts.spec.expectation_arguments import ARGUMENTS, OWN_EXPECTATIONS
from millrace.control.gates.result import GateResult
from millrace.errors import SpecError
from millrace_spark.quality.gx.classes import expectation_class

_SEVERITY = {Action.FAIL: "critical", Action.WARN: "warning"}


def suite_result(
    result: GateResult, run_id: str, checked_at: datetime, rows: int | None
) -> ExpectationSuiteValidationResult:
    """Return a gate's result for one version as a result of Great Expectations.

    Args:
        result: the gate's result; an overridden one is no success. Rules with wrong arguments and Millrace's own rules
            are left out, because Great Expectations cannot render them.
        run_id: the id of the run, which the page of Data Docs shows.
        checked_at: when the gate checked the version.
        rows: rows of the version, for shares; None if the number is not known any more.
    """
    checks = [_check(check, rows) for check in result.checks if _is_renderable(check)]
    passed = sum(check.passed for check in result.checks)
    return ExpectationSuiteValidationResult(
        success=result.passed and result.override is None,
        results=checks,
        suite_name=result.table,
        suite_parameters={},
        statistics={
            "evaluated_expectations": len(result.checks),
            "successful_expectations": passed,
            "unsuccessful_expectations": len(result.checks) - passed,
            "success_percent": 100 * passed / len(result.checks) if result.checks else None,
        },
        meta={
            "great_expectations_version": gx.__version__,
            "run_id": RunIdentifier(run_name=run_id, run_time=checked_at),
            "batch_spec": {"data_asset_name": f"version {result.version}"},
        },
    )


def _is_renderable(check: CheckResult) -> bool:
    """Whether Great Expectations knows the rule and accepts its arguments: otherwise it renders no page at all.

    It does not know a rule of the project's own whose file cannot be run any more.
    """
    if _name(check) in OWN_EXPECTATIONS or _name(check) not in ARGUMENTS:
        return False
    try:
        expectation_class(_name(check))(**_arguments(check))
    except (ValueError, SpecError):  # also pydantic's errors
        return False
    return True


def _check(check: CheckResult, rows: int | None) -> ExpectationValidationResult:
    return ExpectationValidationResult(
        success=check.passed,
        expectation_config=ExpectationConfiguration(
            type=_name(check), kwargs=_arguments(check), severity=check.severity or _SEVERITY[Action(check.action)]
        ),
        result=_details(check, rows),
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
    """Return the rule's arguments; the names of columns come from the rule's text, by their order."""
    columns = [column for column in check.rule.removesuffix(")").partition("(")[2].split(", ") if column]
    fields = expectation_class(_name(check)).__fields__
    if "column_list" in fields:
        return {"column_list": columns, **check.expected}
    named = zip((key for key in ("column", "column_A", "column_B") if key in fields), columns, strict=False)
    return {**dict(named), **check.expected}


def _details(check: CheckResult, rows: int | None) -> dict[str, Any]:
    """Return the details of the result, with the share of unexpected rows if both counts are known."""
    unexpected = check.unexpected_rows
    details: dict[str, Any] = {"partial_unexpected_list": list(map(_escaped, check.samples)), "unexpected_count": 0}
    if _name(check) == "expect_table_columns_to_match_ordered_list":
        details["observed_value"] = []  # Great Expectations renders no page without it.
    # Only this renderer of Great Expectations expects numbers by key; json_safe made them from its own result.
    is_quantiles = _name(check) == "expect_column_quantile_values_to_be_between"
    if check.observed is not None and not (is_quantiles and check.observed == RESTRICTED):
        details["observed_value"] = check.observed if is_quantiles else _escaped(check.observed)
    if unexpected and rows:
        share = 100 * unexpected / rows
        return {**details, "unexpected_count": unexpected, "element_count": rows, "unexpected_percent": share}
    return {"observed_value": counted(unexpected, "unexpected row"), **details} if unexpected else details


def _escaped(value: Any) -> Any:
    """Return `value` as text without markup: Great Expectations does not escape values in its pages."""
    if isinstance(value, bool | int | float):
        return value
    return escape(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))

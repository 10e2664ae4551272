"""The verdict of a gate on one exact table version, and the line that the person on call reads first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from include.contracts.job.report import CheckResult
from include.contracts.spec.expectation import Action, Severity


@dataclass(frozen=True)
class Verdict:
    """Whether a version may be certified.

    Attributes:
        passed: no rule with action `fail` failed.
        refused: when not passed, one line: what failed, what readers see meanwhile, what to do.
        warnings: one line for each failed rule that only warns, and for each that had nothing to be judged by.
    """

    passed: bool
    refused: str = ""
    warnings: tuple[str, ...] = ()


def verdict(table: str, version: int, checks: Sequence[CheckResult], certified: int | None) -> Verdict:
    """The verdict that follows from the checks.

    Args:
        table: the table, as `<layer>.<name>`.
        version: the version that was judged.
        checks: what each rule said of it.
        certified: the version that readers stay on when this one is refused; None when there is none yet.

    >>> check = CheckResult(
    ...     rule="expect_table_row_count_to_be_between()", action="fail", passed=False,
    ...     expected={"min_value": 1}, observed=0, reason="an empty day means the feed is broken",
    ... )
    >>> print(verdict("silver.flights", 7, [check], 6).refused)
    silver.flights version 7 refused: expect_table_row_count_to_be_between(min_value=1) observed 0 \
(an empty day means the feed is broken); readers stay on version 6
    Fix the data or the rule, then clear this task.
    """
    failed = sorted((check for check in checks if not check.passed), key=_by_severity)
    blocking = [check for check in failed if check.action == Action.FAIL]
    told = [check for check in failed if check not in blocking] + [check for check in checks if check.not_judged]
    warnings = tuple(f"{_told_as(check)}{table} version {version}: {finding(check)}" for check in told)
    return Verdict(not blocking, _refusal(table, version, blocking, certified) if blocking else "", warnings)


def finding(check: CheckResult) -> str:
    """One line on a failed check: the rule as it is written, what was found instead, and why the rule exists."""
    reason = f" ({check.reason})" if check.reason else ""
    return f"{_as_written(check)} {what_was_found(check)}{reason}"


def what_was_found(check: CheckResult) -> str:
    """What was found instead of what the rule wants, and what it was held against."""
    against = f", against {check.against}" if check.against and not check.passed else ""
    return f"{_found(check)}{against}"


def _by_severity(check: CheckResult) -> int:
    severities = [severity.value for severity in Severity]
    return severities.index(check.severity) if check.severity in severities else 0


def _told_as(check: CheckResult) -> str:
    """What a warning that is none begins with."""
    return f"{check.severity}: " if check.severity and check.severity != Severity.WARNING and not check.passed else ""


def _refusal(table: str, version: int, blocking: Sequence[CheckResult], certified: int | None) -> str:
    others = f"; and {len(blocking) - 1} more failed" if len(blocking) > 1 else ""
    readers = "readers have no certified version yet" if certified is None else f"readers stay on version {certified}"
    return (
        f"{table} version {version} refused: {finding(blocking[0])}{others}; {readers}\n"
        "Fix the data or the rule, then clear this task."
    )


def _as_written(check: CheckResult) -> str:
    name, _, columns = check.rule.removesuffix(")").partition("(")
    expected = ", ".join(f"{key}={value}" for key, value in check.expected.items())
    return f"{name}({', '.join(part for part in (columns, expected) if part)})"


def _found(check: CheckResult) -> str:
    if check.error:
        return f"could not be judged: {check.error}"
    if check.not_judged:
        return f"was not judged: {check.not_judged}"
    if check.unexpected_rows is not None:
        samples = f", such as {', '.join(map(str, check.samples))}" if check.samples else ""
        return f"is failed by {check.unexpected_rows} rows{samples}"
    if check.samples:
        return f"found {', '.join(map(str, check.samples))}"
    return "failed" if check.observed is None else f"observed {check.observed}"

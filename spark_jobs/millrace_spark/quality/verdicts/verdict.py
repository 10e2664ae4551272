"""Why a gate refuses an exact table version: the line that the person on call reads first; and its warnings.

It also refuses a version whose figures, which followed from version to version, are not those of all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval
from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.expectation import Action, Severity


def refusal_text(
    table: str, version: int, checks: Sequence[CheckResult], certified: int | None, interval: Interval
) -> str:
    """Return why a version is refused, and on a second line what to do; empty if its checks let it pass.

    Args:
        table: the table, as `<layer>.<name>`.
        version: the version that was checked.
        checks: the result of each rule.
        certified: the version that readers stay on; None if there is none yet.
        interval: the interval to run again.

    >>> day = Interval(start="2013-01-05T00:00Z", end="2013-01-06T00:00Z")
    >>> check = CheckResult(
    ...     rule="expect_table_row_count_to_be_between()", action="fail", passed=False,
    ...     expected={"min_value": 1}, observed=0, reason="an empty day means the feed is broken",
    ... )
    >>> print(refusal_text("silver.flights", 7, [check], 6, day))
    silver.flights version 7 refused: expect_table_row_count_to_be_between(min_value=1) observed 0 \
(an empty day means the feed is broken); readers stay on version 6
    Fix the data or the rule, then run the table again: `lakehouse run --table silver.flights --interval 2013-01-05`, \
or in Airflow clear the task that writes it, with its downstream tasks.
    """
    blocking = [check for check in _failed(checks) if check.action == Action.FAIL]
    if not blocking:
        return ""
    others = f"; and {len(blocking) - 1} more failed" if len(blocking) > 1 else ""
    readers = "readers have no certified version yet" if certified is None else f"readers stay on version {certified}"
    return (
        f"{table} version {version} refused: {describe_failure(blocking[0])}{others}; {readers}\n"
        f"Fix the data or the rule, then run the table again: `lakehouse run --table {table} --interval "
        f"{interval.option}`, or in Airflow clear the task that writes it, with its downstream tasks."
    )


def warnings_of(table: str, version: int, checks: Sequence[CheckResult]) -> tuple[str, ...]:
    """Return a line for each failed rule that only warns, and for each rule that was not checked."""
    warned = [check for check in _failed(checks) if check.action != Action.FAIL]
    warned += [check for check in checks if check.not_judged]
    return tuple(f"{_severity(check)}{table} version {version}: {describe_failure(check)}" for check in warned)


def _failed(checks: Sequence[CheckResult]) -> list[CheckResult]:
    """Return the failed checks, the most severe first."""
    order = {severity.value: place for place, severity in enumerate(Severity)}
    return sorted((check for check in checks if not check.passed), key=lambda check: order.get(check.severity, 0))


def describe_result(check: CheckResult) -> str:
    """Return the failure of a rule in words, and what the version was compared with."""
    against = f", against {check.against}" if check.against and not check.passed else ""
    samples = ", ".join(map(str, check.samples))
    if check.error:
        result = f"could not be checked: {check.error}"
    elif check.not_judged:
        result = f"was not checked: {check.not_judged}"
    elif check.unexpected_rows is not None:
        result = f"is failed by {counted(check.unexpected_rows, 'row')}{f', such as {samples}' if samples else ''}"
    elif check.samples:
        result = f"found {samples}"
    else:
        result = "failed" if check.observed is None else f"observed {check.observed}"
    return f"{result}{against}"


def _severity(check: CheckResult) -> str:
    """Return the start of the line of a failed rule whose severity is not `warning`."""
    return f"{check.severity}: " if check.severity and check.severity != Severity.WARNING and not check.passed else ""


def describe_failure(check: CheckResult) -> str:
    """Return one line: the rule as it is written, its failure, and why the rule exists."""
    return f"{check.bounded_rule} {describe_result(check)}{f' ({check.reason})' if check.reason else ''}"


RULE = "carried_figures_equal_all_rows()"
"""The rule, as it stands among the rules of a spec."""


def carried_check(wrong: Mapping[str, tuple[Any, Any]]) -> tuple[CheckResult, ...]:
    """Return the failed check of figures that differ from those of all rows; nothing if none does.

    Args:
        wrong: figure -> the value that followed from the changes, and that of all rows.

    >>> [check] = carried_check({"sum of amount": (40.0, 41.0), "rows": (2, 3)})
    >>> check.observed
    'rows: 2 by the changes, 3 in all rows; and 1 more figure'
    """
    if not wrong:
        return ()
    name, (carried, in_all_rows) = min(wrong.items())
    more = f"; and {counted(len(wrong) - 1, 'more figure')}" if len(wrong) > 1 else ""
    check = CheckResult(
        rule=RULE,
        action=Action.FAIL.value,
        passed=False,
        severity=Severity.CRITICAL.value,
        reason="the change feed does not lead to the rows of the table",
        observed=f"{name}: {carried} by the changes, {in_all_rows} in all rows{more}",
        samples=(),
    )
    return (check,)


def carried_way_out(table: str, version: int) -> str:
    """Return what to do about carried figures that were wrong."""
    return (
        "The next version is checked by the figures of all rows, so nothing wrong is carried on. Find out which tool "
        f"but Millrace writes to {table}; if there is none, this is a defect of Millrace. If the rows are right: "
        f"`lakehouse gate override {table} --version {version} --reason ...`"
    )

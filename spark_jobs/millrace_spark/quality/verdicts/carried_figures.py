"""The check that figures which followed from version to version are those of all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.contracts.counted import counted
from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.expectation import Action, Severity

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

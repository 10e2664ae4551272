"""What a rule has observed, in words: counts and shares for everybody, values of rows only for who may see rows.

The maximum or the minimum of a column is a value of a row, and a mean or a sum tells one if there are few rows. So only
the rules in `_COUNTED` are for everybody; a rule that is added later is not, until it is named there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.contracts.counted import counted
from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.expectation_arguments import COUNTS_OF_COLUMNS

_COUNTED = COUNTS_OF_COLUMNS | frozenset(
    {
        "expect_table_column_count_to_be_between",
        "expect_table_column_count_to_equal",
        "expect_table_row_count_to_be_between",
        "expect_table_row_count_to_equal",
        "expect_table_row_count_to_be_near_median",
        "expect_table_to_be_fresh",
    }
)
"""The rules that observe a count of rows or values, a share of them, or the age of the table."""


def observed_text(check: CheckResult, *, may_see_rows: bool) -> str:
    """Return what a rule has observed; empty for nothing, and for values of rows that a reader may not see.

    >>> check = CheckResult(rule="expect_column_max_to_be_between(salary)", action="fail", passed=False, observed=90000)
    >>> observed_text(check, may_see_rows=True), observed_text(check, may_see_rows=False)
    ('90,000', '')
    >>> most = CheckResult(rule="expect_column_values_to_not_be_null(n)", action="fail", passed=True,
    ...                    expected={"mostly": 0.95}, unexpected_rows=927)
    >>> observed_text(most, may_see_rows=False)
    '927 rows fail; up to 5 % may'
    """
    if check.unexpected_rows is not None:
        allowed = f"; up to {100 * (1 - check.expected['mostly']):.6g} % may" if "mostly" in check.expected else ""
        return counted(check.unexpected_rows, "row fails", "rows fail") + allowed
    if check.observed is None or not (may_see_rows or is_counted(check)):
        return ""
    return _text(check.observed)


def failure_without_values(check: CheckResult) -> str:
    """Return the rule as it is written, its failure without a value of a row, and why the rule exists.

    >>> failure_without_values(CheckResult(rule="expect_column_max_to_be_between(salary)", action="fail", passed=False,
    ...                                    expected={"max_value": 9}, observed=90000, reason="by law"))
    'expect_column_max_to_be_between(salary, max_value=9) failed (by law)'
    """
    if check.error:
        result = "could not be checked"
    elif check.unexpected_rows is not None:
        result = f"is failed by {counted(check.unexpected_rows, 'row')}"
    else:
        observed = observed_text(check, may_see_rows=False)
        result = f"observed {observed}" if observed else "failed"
    return f"{check.bounded_rule} {result}{f' ({check.reason})' if check.reason else ''}"


def is_counted(check: CheckResult) -> bool:
    """Whether what a rule has observed is no value of a row."""
    return check.rule.partition("(")[0] in _COUNTED


def _text(observed: Any) -> str:
    if isinstance(observed, Mapping):
        return ", ".join(f"{name} {_text(value)}" for name, value in observed.items())
    if isinstance(observed, int | float) and not isinstance(observed, bool):
        return f"{observed:,}" if isinstance(observed, int) else f"{observed:,.6g}"
    return str(observed)

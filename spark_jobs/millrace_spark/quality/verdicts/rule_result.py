"""The result of one table rule, whether figures or Great Expectations evaluated it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace_spark.spark_errors import cause_in

ALL_ROWS = "all rows"
"""How a rule was judged for which all rows of the version were read."""

_MAX_LENGTH = 500


@dataclass(frozen=True)
class RuleResult:
    """The result of one rule.

    Attributes:
        passed: true only for an explicit success.
        details: the findings, under Great Expectations' names: `observed_value`, `element_count`,
            `unexpected_count`, `partial_unexpected_list`.
        error: why the rule could not be evaluated.
        is_raised: whether the error is one of Spark or Great Expectations, whose text may have values of rows.
        not_judged: why the rule was not evaluated, where that is no failure.
        against: what the version was compared with, such as `silver.planes version 4`.
        judged_by: the rows that were read: `all rows`, or `the change since version 6`; empty if the log sufficed.
    """

    passed: bool
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    is_raised: bool = False
    not_judged: str = ""
    against: str = ""
    judged_by: str = ""


def one_line(message: str) -> str:
    """Return the innermost cause in an error message of Spark in one line, at most `_MAX_LENGTH` characters."""
    text = " ".join(line.strip() for line in cause_in(message).split("\n") if line.strip())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."

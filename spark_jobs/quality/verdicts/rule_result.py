"""The result of one table rule, whether figures or Great Expectations evaluated it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RuleResult:
    """The result of one rule.

    Attributes:
        passed: true only for an explicit success.
        details: the findings, under Great Expectations' names: `observed_value`, `element_count`,
            `unexpected_count`, `partial_unexpected_list`.
        error: why the rule could not be evaluated.
        not_judged: why the rule was not evaluated, where that is no failure.
        against: what the version was compared with, such as `silver.planes version 4`.
    """

    passed: bool
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    not_judged: str = ""
    against: str = ""


def figure_result(passed: bool, value: Any) -> RuleResult:
    """Return the result for one figure."""
    return RuleResult(passed, {"observed_value": value})

"""What is said of one table rule, by whichever way it was judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Judgement:
    """The verdict on one rule.

    Attributes:
        passed: true only for an explicit success.
        details: what was found, under the names that Great Expectations gives it: `observed_value`, `element_count`,
            `unexpected_count`, `partial_unexpected_list`.
        error: why the rule could not be judged.
        not_judged: why there is no verdict, of a rule that does not fail for it.
        against: what the version was held against, such as `silver.planes version 4`.
    """

    passed: bool
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    not_judged: str = ""
    against: str = ""


def observed(passed: bool, value: Any) -> Judgement:
    """The verdict on one figure."""
    return Judgement(passed, {"observed_value": value})


def counted(passed: bool, rows: int, failing: int) -> Judgement:
    """The verdict on a number of failing rows."""
    return Judgement(passed, {"element_count": rows, "unexpected_count": failing})

"""The narrower band of an expectation, which only warns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from include.contracts.spec.expectation import Expectation
from tests.support.documents.refusals import assert_rule_refused, problems_of
from tests.support.documents.specs import bronze_document, silver_document, write_specs

BETWEEN = "expect_column_values_to_be_between"


def banded(name: str, warn: Any, action: str = "fail", **arguments: Any) -> list[dict[str, Any]]:
    return [{name: arguments, "action": action, "warn": warn}]


def test_narrower_bands_are_accepted(tmp_path: Path) -> None:
    rules = [
        banded(BETWEEN, {"min_value": 0, "max_value": 5}, column="amount", min_value=0, max_value=9),
        banded(BETWEEN, {"min_value": 1}, column="amount", max_value=9),
        banded(BETWEEN, {"mostly": 0.9}, column="amount", max_value=9, mostly=0.5),
        banded(BETWEEN, {"max_value": "2013-01-05"}, column="day", max_value="2013-01-06"),
        banded("expect_table_to_be_fresh", {"max_age": "90 minutes"}, column="event_at", max_age="2 hours"),
        banded("expect_column_distribution_to_be_stable", {"max_psi": 0.1}, column="amount", max_psi=0.25),
    ]
    write_specs(tmp_path, bronze_document(), silver_document(expectations=[rule for (rule,) in rules]))
    assert problems_of(tmp_path) == ()


@pytest.mark.parametrize(
    ("expectations", "key", "message", "fix"),
    [
        (
            banded(BETWEEN, {"max_value": 10}, column="amount", max_value=9),
            "warn.max_value",
            "must be within the rule",
            "give 9 or less",
        ),
        (
            banded(BETWEEN, {"min_value": "2013-01-01"}, column="day", min_value="2013-01-02"),
            "warn.min_value",
            "must be within",
            "give '2013-01-02' or more",
        ),
        (
            banded("expect_table_to_be_fresh", {"max_age": "2 days"}, column="event_at", max_age="36 hours"),
            "warn.max_age",
            "must be within",
            "give '36 hours' or less",
        ),
        (
            banded(BETWEEN, {"column": ["day"]}, column="amount", max_value=9),
            "warn.column",
            "states only bounds",
            "known are",
        ),
        (
            banded("expect_column_to_exist", {"max_value": 1}, column="amount"),
            "warn.max_value",
            "states only bounds",
            "leave the band out",
        ),
        (
            banded(BETWEEN, {"max_value": "5"}, column="amount", max_value=9),
            "warn.max_value",
            "compared with numbers",
            "write a number",
        ),
        (banded(BETWEEN, {"mostly": 2}, column="amount", max_value=9), "warn.mostly", "at most 1", ""),
        (
            banded(BETWEEN, {"max_value": 5}, "warn", column="amount", max_value=9),
            "warn",
            "needs a rule with action: fail, and this rule's action is warn",
            "",
        ),
        (
            [{BETWEEN: {"column": "amount", "max_value": 9}, "action": "drop", "severity": "info"}],
            "severity",
            "severity is for warn and fail",
            "",
        ),
        (
            [{BETWEEN: {"column": "amount", "max_value": 9}, "action": "warn", "severity": "warn"}],
            "severity",
            "unknown value",
            "did you mean 'warning'?",
        ),
    ],
)
def test_a_wrong_band_or_severity_is_named_with_its_likely_fix(
    tmp_path: Path, expectations: Any, key: str, message: str, fix: str
) -> None:
    assert_rule_refused(tmp_path, expectations, key, message, fix)


def test_a_band_is_the_same_rule_with_its_own_bounds_that_warns() -> None:
    rule = Expectation.model_validate(
        {BETWEEN: {"column": "a", "min_value": 0, "max_value": 9}, "action": "fail", "warn": {"max_value": 5}}
    )
    outer, inner = rule.bands
    assert (outer.action.value, outer.arguments) == ("fail", {"column": "a", "min_value": 0, "max_value": 9})
    assert (inner.action.value, inner.arguments) == ("warn", {"column": "a", "min_value": 0, "max_value": 5})
    assert not outer.warn
    assert not inner.warn
    for action, severity in (("fail", "critical"), ("warn", "warning")):
        alone = Expectation.model_validate({BETWEEN: {"column": "a", "max_value": 9}, "action": action})
        assert (alone.stated_severity.value, len(alone.bands)) == (severity, 1)
    told = Expectation.model_validate({BETWEEN: {"column": "a", "max_value": 9}, "action": "fail", "severity": "info"})
    assert told.stated_severity.value == "info", "unless it is stated it follows the action"

"""Figures against bounds, as Great Expectations compares them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from millrace_spark.quality.rules.figure_bounds import NotFusedError, between, number, whole


@pytest.mark.parametrize(
    ("figure", "bounds", "passed"),
    [
        (Decimal("0.100"), {"min_value": 0.1}, True),
        (Decimal("0.100"), {"max_value": 0.1}, True),
        (Decimal("0.100"), {"min_value": 0.1, "strict_min": True}, False),
        (Decimal("0.101"), {"max_value": 0.1}, False),
        (Decimal("NaN"), {"min_value": 0}, False),
        (float("nan"), {"min_value": 0}, False),
        (float("inf"), {"min_value": 0}, True),
        (None, {"min_value": 0}, False),
        (5, {"min_value": 5, "max_value": 5}, True),
    ],
)
def test_a_number_lies_between_bounds_that_are_doubles(figure: Any, bounds: dict[str, Any], passed: bool) -> None:
    assert between(bounds, number)(figure).passed is passed


def test_bounds_that_are_missing_or_of_another_kind_are_for_great_expectations_to_refuse() -> None:
    for wrong in ({}, {"min_value": "5"}, {"min_value": True}):
        with pytest.raises(NotFusedError):
            between(wrong, number)
    with pytest.raises(NotFusedError):
        between({"min_value": 1.5}, whole)

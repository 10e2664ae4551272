"""The number of examples of a property: few in every run of the tests, many in `make faults`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with few examples, and in `make faults` with many."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.faults)])


def so_many(examples: int) -> settings:
    """Settings for examples that run Spark jobs; a failing example is shown without shrinking."""
    return settings(
        max_examples=examples,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

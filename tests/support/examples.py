"""Numbers of examples for property tests: few in every run of the tests, many in `make faults`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with few examples, and in `make faults` with many."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.faults)])


def settings_for(examples: int) -> settings:
    """Return settings for examples that run Spark jobs: without a deadline, and without shrinking a failing example."""
    return settings(
        max_examples=examples,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

"""How many examples a property is held against: a few in every run of the tests, many as a slow proof."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Runs a test with `examples`: few, and with `make faults` many."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.faults)])


def so_many(examples: int) -> settings:
    """So many examples of a property that costs Spark jobs; a failing one is shown as it was found."""
    return settings(
        max_examples=examples,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

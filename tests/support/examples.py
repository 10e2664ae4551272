"""Numbers of examples for property tests: few in every run of the tests, many in `make faults`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st


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


def many(values: st.SearchStrategy[Any], least: int = 60, most: int = 90) -> st.SearchStrategy[list[Any]]:
    """Return lists of different values for one query; the first thing that hypothesis tries is one, sixty times."""
    return st.lists(values, min_size=least, max_size=most).filter(lambda drawn: len(set(map(repr, drawn))) > least / 3)

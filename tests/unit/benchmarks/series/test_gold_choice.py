"""The cases of the choice, and what a refresh chooses by its figures."""

from __future__ import annotations

from benchmarks.refreshing.choices import CASES, INCREMENTAL, WHOLE
from benchmarks.series.gold_choice import choice
from include.control.planning.refresh_cost import TRACING, RefreshCost


def test_there_are_24_cases() -> None:
    assert len(set(CASES)) == 24


def test_the_choice_is_that_of_the_refresh() -> None:
    for read, chosen in ((TRACING // 10, INCREMENTAL), (2 * TRACING, WHOLE)):
        assert choice(RefreshCost(2 * TRACING, 0, changes=0, read=read, values=1).figures()) == chosen

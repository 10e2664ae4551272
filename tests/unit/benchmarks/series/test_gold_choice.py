"""The cases of the choice, and what a refresh chooses by its figures."""

from __future__ import annotations

from benchmarks.refreshing.choices import CASES, INCREMENTAL, OTHER_CASES, WHOLE
from benchmarks.series.gold_choice import choice
from include.control.planning.refresh_cost import TRACING, RefreshCost


def test_there_are_24_cases_and_24_others_of_other_sizes_and_changes() -> None:
    assert len(set(CASES)) == len(set(OTHER_CASES)) == 24
    for place in (0, 1):
        assert not {case[place] for case in CASES} & {case[place] for case in OTHER_CASES}


def test_the_choice_is_that_of_the_refresh() -> None:
    for read, chosen in ((TRACING // 10, INCREMENTAL), (2 * TRACING, WHOLE)):
        assert choice(RefreshCost(2 * TRACING, 0, changes=0, read=read, values=1).figures()) == chosen

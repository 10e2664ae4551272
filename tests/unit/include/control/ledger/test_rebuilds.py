"""The active rebuilds of a lakehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.contracts.job.requests import RebuildRequest
from include.control.ledger.rebuilds import RebuildEvent, Rebuilds
from include.paths import LakehousePaths

ORDERS, REVENUE = "silver.orders", "gold.revenue"
ANN = RebuildRequest(said_by="ann", why="other keys")


@pytest.fixture
def rebuilds(tmp_path: Path) -> Rebuilds:
    return Rebuilds(LakehousePaths(tmp_path))


@pytest.mark.parametrize("end", [RebuildEvent.DONE, RebuildEvent.CANCELLED])
def test_a_rebuild_is_active_until_it_is_done_or_cancelled(rebuilds: Rebuilds, end: RebuildEvent) -> None:
    assert rebuilds.active([ORDERS]) == []
    first = rebuilds.start(ORDERS, (ORDERS, REVENUE), ("a", "b"), ANN, "monday")
    assert rebuilds.active([REVENUE, ORDERS]) == [first]
    assert rebuilds.active([REVENUE]) == [], "it was requested for the upstream table"
    for _ in range(2):
        rebuilds.record(end, first, ANN, "tuesday")
    assert rebuilds.active([ORDERS]) == []
    assert rebuilds.ended_ids(ORDERS) == [first.id]
    second = rebuilds.start(ORDERS, (ORDERS,), ("a",), ANN, "wednesday")
    assert rebuilds.active([ORDERS]) == [second]


def test_a_resumed_rebuild_has_the_same_token_and_each_table_its_own(rebuilds: Rebuilds) -> None:
    started = [rebuilds.start(ORDERS, (ORDERS, REVENUE), ("a", "b"), ANN, "monday") for _ in range(2)]
    resumed = rebuilds.active([ORDERS])
    assert {each.token(ORDERS) for each in resumed} == {each.token(ORDERS) for each in started}
    assert len({each.token(table) for each in resumed for table in (ORDERS, REVENUE)}) == 4

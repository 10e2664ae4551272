"""Which rebuilds are under way."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.contracts.job.rebuild_request import RebuildRequest
from include.control.ledger.rebuilds import RebuildEvent, Rebuilds
from include.paths import LakehousePaths

ORDERS, REVENUE = "silver.orders", "gold.revenue"
ANN = RebuildRequest(said_by="ann", why="other keys")


@pytest.fixture
def rebuilds(tmp_path: Path) -> Rebuilds:
    return Rebuilds(LakehousePaths(tmp_path))


@pytest.mark.parametrize("end", [RebuildEvent.DONE, RebuildEvent.CANCELLED])
def test_one_is_under_way_until_it_is_done_or_cancelled(rebuilds: Rebuilds, end: RebuildEvent) -> None:
    assert rebuilds.active([ORDERS]) == []
    first = rebuilds.start(ORDERS, (ORDERS, REVENUE), ("a", "b"), ANN, "monday")
    assert rebuilds.active([REVENUE, ORDERS]) == [first]
    assert rebuilds.active([REVENUE]) == [], "it was asked for at the table above"
    for _ in range(2):
        rebuilds.record(end, first, ANN, "tuesday")
    assert rebuilds.active([ORDERS]) == []
    assert rebuilds.ended_ids(ORDERS) == [first.id]
    second = rebuilds.start(ORDERS, (ORDERS,), ("a",), ANN, "wednesday")
    assert rebuilds.active([ORDERS]) == [second]


def test_its_tokens_are_the_same_whoever_resumes_it_and_others_for_each_table(rebuilds: Rebuilds) -> None:
    first = rebuilds.start(ORDERS, (ORDERS, REVENUE), ("a", "b"), ANN, "monday")
    second = rebuilds.start(ORDERS, (ORDERS, REVENUE), ("a", "b"), ANN, "monday")
    (resumed, _) = sorted(rebuilds.active([ORDERS]), key=lambda one: one.id != first.id)
    assert resumed.token(ORDERS) == first.token(ORDERS)
    assert len({one.token(table) for one in (first, second) for table in (ORDERS, REVENUE)}) == 4

"""Replays into tables with history: each row gets the place of its sequence, and keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.errors import Outcome
from tests.support.documents.specs import silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

BRONZE, SILVER = "bronze.orders", "silver.orders"
HISTORY = {
    "stored_as_scd_type": 2,
    "except_column_list": ["event_at", "event_seq", "day"],
    "expectations": [AT_LEAST_0],
}


def state(lakehouse: Lakehouse, **changes: Any) -> None:
    lakehouse.specs(silver_document(**HISTORY, **changes))
    (lakehouse.folder / "tables/gold/shop/revenue_daily.yaml").unlink()


def merge(lakehouse: Lakehouse, number: int, *events: dict[str, Any]) -> None:
    """Merge events of a day."""
    given(lakehouse, BRONZE, events, number)
    lakehouse.run_well(number, SILVER)


def periods(lakehouse: Lakehouse, unit: str) -> list[tuple[Any, ...]]:
    rows = lakehouse.rows(SILVER, "order_id", "amount", "__START_AT", "__END_AT")
    found = [(key, amount, getattr(start, unit), getattr(end, unit, None)) for key, amount, start, end in rows]
    return sorted(found, key=lambda row: (row[0], row[2]))


@pytest.mark.faults
def test_a_fixed_late_event_splits_its_period_and_stays_there(lakehouse: Lakehouse) -> None:
    state(lakehouse, sequence_by=["event_at"])
    merge(lakehouse, 1, order(1, 5, 1), order(1, -7, 4), order(2, -1, 1))
    merge(lakehouse, 2, order(1, 9, 8))
    report = lakehouse.replay(SILVER, assign={"amount": "abs(amount)"}, why="the till's sign was wrong")
    assert report.outcome is Outcome.COMMITTED, report.message
    fixed = [("o1", 5, 1, 4), ("o1", 7, 4, 8), ("o1", 9, 8, None), ("o2", 1, 1, None)]
    assert periods(lakehouse, "hour") == fixed
    merge(lakehouse, 3, order(1, 6, 2))
    assert periods(lakehouse, "hour") == [("o1", 5, 1, 2), ("o1", 6, 2, 4), *fixed[1:]]


@pytest.mark.faults
def test_a_fixed_row_of_a_snapshot_is_in_that_snapshot(lakehouse: Lakehouse) -> None:
    state(lakehouse, sequence_by=[], snapshot="full")
    for number, amount in ((1, 5), (2, -6), (3, 7)):
        merge(lakehouse, number, order(1, amount))
    assert periods(lakehouse, "day") == [("o1", 5, 1, 3), ("o1", 7, 3, None)]
    report = lakehouse.replay(SILVER, assign={"amount": "abs(amount)"}, why="the till's sign was wrong")
    assert report.outcome is Outcome.COMMITTED, report.message
    assert periods(lakehouse, "day") == [("o1", 5, 1, 2), ("o1", 6, 2, 3), ("o1", 7, 3, None)]
    merge(lakehouse, 4, order(1, 7))
    assert len(periods(lakehouse, "day")) == 3

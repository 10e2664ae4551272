"""Replayed rows are deliveries: whatever is computed, read or delivered again, each stays where it belongs."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.contracts.row_status import RowStatus
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

pytestmark = pytest.mark.slow

BRONZE, SILVER = "bronze.orders", "silver.orders"
ABS = {"amount": "abs(amount)"}


def run(shop: Lakehouse, number: int = 1, *tables: str) -> None:
    for report in shop.run_all(number, *(tables or (BRONZE, SILVER))):
        assert report.outcome is Outcome.COMMITTED, report.message


def replayed(shop: Lakehouse, table: str = SILVER, **asked: Any) -> int:
    report = shop.replay(table, **asked)
    assert report.outcome is Outcome.COMMITTED, report.message
    return report.rows.applied


def amounts(shop: Lakehouse) -> dict[str, int]:
    return dict(shop.rows(SILVER, "order_id", "amount"))


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Two files of a day with o1; silver has its row of b.json since its amount was fixed."""
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    shared.specs(bronze_document(source=source), silver_document(expectations=[AT_LEAST_0]))
    given(shared, BRONZE, [order(1, 5, 7), order(2, 2, 7)], name="a.json")
    given(shared, BRONZE, [order(1, -6, 9)], name="b.json")
    run(shared, 1, SILVER)
    assert replayed(shared, assign=ABS) == 1
    assert amounts(shared) == {"o1": 6, "o2": 2}
    return shared


def test_a_fixed_row_counts_when_another_file_of_its_key_is_replaced(shop: Lakehouse) -> None:
    shop.deliver(1, "a.json", [order(2, 3, 7)])
    run(shop)
    assert amounts(shop) == {"o1": 6, "o2": 3}
    assert [row.status for row in shop.waiting(SILVER, *RowStatus)] == [RowStatus.REPLAYED]


def test_a_replaced_file_removes_its_fixed_row_and_the_new_row_waits_again(shop: Lakehouse) -> None:
    (before,) = shop.waiting(SILVER, RowStatus.REPLAYED)
    shop.deliver(1, "b.json", [order(1, -6, 9), order(9, 1)])
    run(shop)
    assert amounts(shop) == {"o1": 5, "o2": 2, "o9": 1}
    (after,) = shop.waiting(SILVER, *RowStatus)
    assert (after.status, after.attempts, after.id != before.id) == (RowStatus.OPEN, 0, True)
    shop.deliver(1, "a.json", [order(2, 2, 7)])
    run(shop)
    assert amounts(shop) == {"o2": 2, "o9": 1}, "the fix of a delivery that is gone counts no more"


def test_a_row_with_a_fixed_key_is_removed_with_its_file(shop: Lakehouse) -> None:
    given(shop, BRONZE, [order(None, 4, 9)], name="c.json")
    run(shop, 1, SILVER)
    assert replayed(shop, assign={"order_id": "'o7'"}) == 1
    assert amounts(shop)["o7"] == 4
    shop.deliver(1, "c.json", [order(8, 4, 9)])
    run(shop)
    assert amounts(shop) == {"o1": 6, "o2": 2, "o8": 4}


@pytest.mark.faults
def test_a_replayed_row_is_part_of_its_own_snapshot_only(lakehouse: Lakehouse) -> None:
    snapshot = silver_document(snapshot="full", expectations=[AT_LEAST_0])
    del snapshot["sequence_by"]
    lakehouse.specs(bronze_document(expectations=[AT_LEAST_0]), snapshot)
    lakehouse.deliver(1, "a.json", [order(1, 1), order(None, 7), order(2, -2)])
    run(lakehouse)
    assert replayed(lakehouse, assign={"order_id": "'o7'"}) == 1
    assert replayed(lakehouse, BRONZE, assign=ABS) == 1
    run(lakehouse, 1, SILVER)
    assert amounts(lakehouse) == {"o1": 1, "o2": 2, "o7": 7}, "a replay is no empty snapshot of its own"
    given(lakehouse, BRONZE, [order(3, 3)])
    run(lakehouse, 1, SILVER)
    assert amounts(lakehouse) == {"o1": 1, "o2": 2, "o3": 3, "o7": 7}
    given(lakehouse, BRONZE, [order(1, 1)], 2)
    run(lakehouse, 2, SILVER)
    assert amounts(lakehouse) == {"o1": 1}

"""`on_changed_file: replace` of full snapshots: the new content of the newest file is the whole table."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.errors import Outcome
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order

pytestmark = pytest.mark.slow

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")
RULE = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Two snapshots of the orders in all three layers; a file that is delivered again replaces what it held."""
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    silver = silver_document(snapshot="full", expectations=[RULE])
    del silver["sequence_by"]
    shared.specs(bronze_document(source=source), silver, gold_document())
    days = [order(1, 1), order(2, 2), order(3, 3)], [order(1, 10), order(2, 2), order(4, -4)]
    for number, rows in enumerate(days, 1):
        given(shared, BRONZE, rows, number, "all.json")
        run(shared, number, SILVER)
    run(shared, 2, GOLD)
    assert amounts(shared) == {"o1": 10, "o2": 2}, "o3 is gone, o4 quarantined"
    assert len(shared.quarantine(SILVER)) == 1
    return shared


@pytest.fixture
def shop(made: Lakehouse, tmp_path: Path) -> Lakehouse:
    """That lakehouse, for one test."""
    return copy_lakehouse(made, tmp_path / "shop")


def run(shop: Lakehouse, number: int, *tables: str, **more: str) -> None:
    for report in shop.run_all(number, *tables or TABLES, **more):
        assert report.outcome in (Outcome.COMMITTED, Outcome.NO_OP), report.message
        assert report.rows.are_conserved


def amounts(shop: Lakehouse) -> dict[str, int]:
    return dict(shop.rows(SILVER, "order_id", "amount"))


def test_a_replaced_newest_snapshot_is_the_whole_table_and_an_emptied_one_once_a_person_allows_it(
    shop: Lakehouse,
) -> None:
    shop.deliver(2, "all.json", [order(2, 2), order(3, 30), order(4, 4), order(5, -5)])
    run(shop, 2)
    assert amounts(shop) == {"o2": 2, "o3": 30, "o4": 4}
    assert shop.rows(GOLD, "orders", "revenue") == [(3, 36)]
    assert ["o5" in row["record"] for row in shop.quarantine(SILVER)] == [True], "what was refused before is gone"

    shop.deliver(2, "all.json", "")
    assert shop.run(BRONZE, 2).exit_code == 0
    assert shop.run(SILVER, 2).outcome is Outcome.DELETES_REFUSED
    run(shop, 2, SILVER, GOLD, allow_deletes="ann")
    assert (amounts(shop), shop.rows(GOLD, "orders"), shop.quarantine(SILVER)) == ({}, [], [])


@pytest.mark.faults
def test_a_replaced_older_snapshot_does_not_change_a_newer_snapshot(shop: Lakehouse) -> None:
    shop.deliver(1, "all.json", [order(1, 100), order(9, 9)])
    run(shop, 1)
    assert ("o9", 9) in shop.rows(BRONZE, "order_id", "amount")
    assert amounts(shop) == {"o1": 10, "o2": 2}
    assert shop.rows(GOLD, "orders", "revenue") == [(2, 12)]
    assert len(shop.quarantine(SILVER)) == 1

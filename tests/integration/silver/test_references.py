"""Rows of a silver table wait in quarantine for a row of another table, and come by themselves, on real Delta."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millrace.catalog import load_catalog
from millrace.contracts.row_status import RowStatus
from millrace.control.log.delta_log import latest_version, read_commit
from millrace.control.log.stored_tables import open_table
from millrace.control.planning.advice import Advice
from millrace.control.planning.planner import Planner
from millrace.errors import Outcome
from millrace.settings import Settings
from tests.support.given import given
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import day, judge
from tests.support.silver.known_customers import (
    BRONZE_ORDERS,
    CUSTOMERS,
    ORDERS,
    UNKNOWN,
    customer,
    order_of,
    shop_documents,
)


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Only customer c1 is known; o1, o4 and o6 are of c1, o2 of c2, o3 of nobody, o5 of c5."""
    shared.specs(*shop_documents())
    given(shared, CUSTOMERS, [customer(1, 1)])
    waiting = [order_of(2, 2, 2), order_of(5, 5, 8)]
    given(shared, BRONZE_ORDERS, [order_of(1, 1, 1), order_of(3, None, 3), order_of(6, 1, 9), *waiting])
    given(shared, BRONZE_ORDERS, [order_of(1, 1, 5), order_of(4, 1, 6)], name="b.json")
    report = shared.run_well(1, ORDERS)
    assert report.rows.model_dump(exclude_defaults=True) == {
        "read": 7, "applied": 4, "superseded": 1, "quarantined": 2, "inserted": 4
    }  # fmt: skip
    assert [key for (key,) in shared.rows(ORDERS, "order_id")] == ["o1", "o3", "o4", "o6"]
    return shared


def advice(shop: Lakehouse) -> Advice:
    catalog = load_catalog(shop.folder / "tables")
    settings = Settings(root=shop.paths.root, landing=shop.folder / "landing", tables=shop.folder / "tables")
    return Planner(catalog, settings).advise(catalog.spec(ORDERS), day(1))


def test_an_order_waits_for_its_customer_and_comes_once_without_a_person_unless_one_has_decided_on_it(
    shop: Lakehouse,
) -> None:
    waiting = {json.loads(row.record)["order_id"]: row for row in shop.waiting(ORDERS)}
    assert {key: row.reasons for key, row in waiting.items()} == {"o2": (UNKNOWN,), "o5": (UNKNOWN,)}
    assert advice(shop).nothing_new
    before = latest_version(shop.paths.table(ORDERS))
    given(shop, CUSTOMERS, [customer(3, 2)])
    assert not advice(shop).nothing_new
    assert shop.run_well(1, ORDERS).outcome == Outcome.NO_OP
    assert advice(shop).nothing_new, "other customers are looked at once"
    assert latest_version(shop.paths.table(ORDERS)) == before
    assert [row.attempts for row in shop.waiting(ORDERS)] == [0, 0]
    fixed = shop.replay(ORDERS, assign={"customer_id": "'c9'"}, rows={"ids": [waiting["o5"].id]})
    assert (fixed.rows.read, fixed.rows.quarantined) == (1, 1), "the fix is judged by the rule as well"

    given(shop, CUSTOMERS, [customer(2, 2), customer(5, 2), customer(9, 3)])

    planned = advice(shop)
    assert (planned.nothing_new, planned.has_new_data) == (False, True)
    assert "looks whether silver.customers has what 1 waiting row refers to" in planned.message
    report = shop.run_well(1, ORDERS)
    assert report.rows.model_dump(exclude_defaults=True) == {"read": 1, "applied": 1, "inserted": 1}, report.message
    assert [key for (key,) in shop.rows(ORDERS, "order_id")] == ["o1", "o2", "o3", "o4", "o6"]
    assert [row.id for row in shop.waiting(ORDERS, RowStatus.REPLAYED)] == [waiting["o2"].id]
    commit = read_commit(shop.paths.table(ORDERS), latest_version(shop.paths.table(ORDERS)))
    assert commit
    pinned = commit.metadata["sources"]["references"][CUSTOMERS]["version"]
    assert pinned == latest_version(shop.paths.table(CUSTOMERS))
    assert shop.run_well(1, ORDERS).outcome == Outcome.NO_OP
    assert advice(shop).nothing_new
    assert shop.replay(ORDERS).rows.applied == 1
    assert ("o5", "c9") in shop.rows(ORDERS, "order_id", "customer_id")


def test_an_accepted_row_stays_when_its_customer_is_deleted_and_its_rows_are_read_again(shop: Lakehouse) -> None:
    given(shop, CUSTOMERS, [customer(1, 9, op="delete")])
    # The file is delivered again, with another event of o1, which is judged now, and without o4.
    shop.deliver(1, "b.json", [order_of(1, 1, 7)])
    shop.run_well(1, BRONZE_ORDERS)
    bronze = open_table(shop.paths.table(BRONZE_ORDERS))
    [row] = [row for row in bronze.to_pyarrow_table().to_pylist() if row["order_id"] == "o6"]
    foreign = {**row, "order_id": "o7", "customer_id": "c7", "_batch_token": None}
    write_deltalake(bronze, pa.Table.from_pylist([foreign], bronze.to_pyarrow_table().schema), mode="append")
    judge(shop.paths.root, load_catalog(shop.folder / "tables").spec(BRONZE_ORDERS), bronze.version())

    again = shop.run_well(1, ORDERS, reprocess=True)

    assert (again.rows.read, again.rows.unchanged, again.rows.quarantined) == (7, 2, 4), again.message
    assert shop.rows(ORDERS, "order_id", "amount") == [("o1", 1), ("o3", 3), ("o6", 9)]
    waiting = sorted(json.loads(row.record)["order_id"] for row in shop.waiting(ORDERS))
    assert waiting == ["o1", "o2", "o5", "o7"], "a row without a token is judged now, too"


def test_a_late_event_computes_a_history_again_without_judging_its_earlier_events(lakehouse: Lakehouse) -> None:
    lakehouse.specs(*shop_documents(stored_as_scd_type=2))
    given(lakehouse, CUSTOMERS, [customer(1, 1)])
    given(lakehouse, BRONZE_ORDERS, [order_of(1, 1, 3), order_of(1, 2, 4)])
    lakehouse.run_well(1, ORDERS)
    assert [row[0] for row in lakehouse.rows(ORDERS, "amount")] == [3]
    given(lakehouse, CUSTOMERS, [customer(1, 9, op="delete"), customer(2, 10)])

    given(lakehouse, BRONZE_ORDERS, [order_of(1, None, 2)])
    report = lakehouse.run_well(1, ORDERS)

    assert "2 batches" in report.message, "the row that waited, then the late one"
    assert [row[0] for row in lakehouse.rows(ORDERS, "amount")] == [2, 3, 4]
    assert lakehouse.waiting(ORDERS) == []

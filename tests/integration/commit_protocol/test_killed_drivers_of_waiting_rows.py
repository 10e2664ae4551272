"""Drivers die while they replay rows whose customer has come, and run again: each row is in its table once."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.contracts.row_status import RowStatus
from include.errors import Outcome
from tests.support.killed_drivers.batches import CleanBatch, run_clean_batch, run_successfully
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.places import OUTCOME_RECORDED, ROWS_PINNED
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import Lakehouse, copy_lakehouse
from tests.support.silver.known_customers import (
    BRONZE_CUSTOMERS,
    BRONZE_ORDERS,
    CUSTOMERS,
    ORDERS,
    customer,
    order_of,
    shop_documents,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def replayed(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> CleanBatch:
    """The batch that brings o2, and o1's earlier event, which is late; o3 still waits."""
    shop = Lakehouse(tmp_path_factory.mktemp("waiting") / "shop")
    shop.specs(*shop_documents())
    shop.deliver(1, "a.json", [customer(1, 1)], feed="customers")
    shop.deliver(1, "a.json", [order_of(1, 1, 9), order_of(1, 2, 1), order_of(2, 2, 2), order_of(3, 3, 3)])
    for table in (BRONZE_CUSTOMERS, CUSTOMERS, BRONZE_ORDERS, ORDERS):
        run_successfully(drivers, shop, table)
    shop.deliver(1, "b.json", [customer(2, 2)], feed="customers")
    for table in (BRONZE_CUSTOMERS, CUSTOMERS):
        run_successfully(drivers, shop, table)
    batch = run_clean_batch(drivers, shop, ORDERS)
    assert batch.report.rows.model_dump(exclude_defaults=True) == {
        "read": 2, "applied": 1, "superseded": 1, "inserted": 1
    }  # fmt: skip
    assert shop.rows(ORDERS, "order_id", "amount") == [("o1", 9), ("o2", 2)]
    return batch


@pytest.mark.parametrize(
    "place",
    [
        Step.COMMIT,
        *(pytest.param(place, marks=pytest.mark.faults) for place in (ROWS_PINNED, OUTCOME_RECORDED)),
    ],
)
def test_the_rows_that_waited_come_once_wherever_the_driver_dies(
    drivers: Drivers, replayed: CleanBatch, tmp_path: Path, place: str
) -> None:
    shop = copy_lakehouse(replayed.before, tmp_path / "shop")
    replayed.kill(drivers, shop, place)

    report = replayed.run(drivers, shop)

    replayed.assert_same(shop, report)
    assert [row.attempts for row in shop.waiting(ORDERS, RowStatus.REPLAYED)] == [1, 1]
    assert [row.attempts for row in shop.waiting(ORDERS)] == [0]
    assert run_successfully(drivers, shop, ORDERS).outcome == Outcome.NO_OP

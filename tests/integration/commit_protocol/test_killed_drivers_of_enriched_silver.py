"""Drivers die while they compute a silver table from other silver tables, and run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.errors import Outcome
from tests.support.killed_drivers.batches import CleanBatch, run_clean_batch, run_successfully, wait_for_late_writes
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.outcome import lost_attempts
from tests.support.killed_drivers.places import BEFORE_INTENT, IN_THE_WRITE, steps_before
from tests.support.killed_drivers.steps import steps_done, steps_of
from tests.support.lakehouse import Lakehouse, copy_lakehouse
from tests.support.silver.enriched_orders import (
    CUSTOMERS,
    ENRICHED,
    FEEDS,
    GOLD,
    ORDERS,
    customer_row,
    enriched_orders,
    enriched_rows,
    order_row,
    rows_from_scratch,
)

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def computed(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> CleanBatch:
    """The second batch: an order is changed, one is gone, one is new, and a customer of other orders is changed."""
    shop = Lakehouse(tmp_path_factory.mktemp("enriched") / "shop")
    shop.specs(*enriched_orders())
    orders = (
        [order_row(number, 5, number % 3, 1) for number in range(1, 6)],
        [order_row(1, 7, 1, 2), order_row(2, 0, 2, 2, gone=True), order_row(9, 1, 0, 2)],
    )
    customers = ([customer_row(0, "home", 1), customer_row(1, "firm", 1)], [customer_row(0, "vip", 2)])
    for number in (1, 2):
        shop.deliver(number, "a.json", orders[number - 1])
        shop.deliver(number, "a.json", customers[number - 1], feed="customers")
        for table in (*FEEDS, ORDERS, CUSTOMERS, *([ENRICHED] if number == 1 else [])):
            run_successfully(drivers, shop, table, number)
    batch = run_clean_batch(drivers, shop, ENRICHED, 2)
    assert enriched_rows(shop) == rows_from_scratch(shop)
    assert [row[0] for row in enriched_rows(shop)] == ["o1", "o3", "o4", "o5", "o9"]
    return batch


@pytest.mark.timeout(1800)
def test_drivers_that_are_killed_at_each_step_in_turn_leave_what_one_clean_driver_leaves(
    drivers: Drivers, computed: CleanBatch, tmp_path: Path
) -> None:
    shop = copy_lakehouse(computed.before, tmp_path / "shop")
    for place in (BEFORE_INTENT, *steps_of(GOLD)):
        computed.kill(drivers, shop, place)
        assert steps_done(shop, ENRICHED, computed.batch_seq) == steps_before(place, GOLD), (
            "the steps are those of gold"
        )

    report = computed.run(drivers, shop)

    assert report.outcome is Outcome.NO_OP
    assert lost_attempts(shop.paths, ENRICHED) == ["intent"]
    computed.assert_same(shop, report)


def test_a_driver_that_dies_while_the_server_writes_doubles_and_loses_no_row(
    drivers: Drivers, computed: CleanBatch, tmp_path: Path
) -> None:
    shop = copy_lakehouse(computed.before, tmp_path / "shop")
    computed.kill(drivers, shop, IN_THE_WRITE)

    report = computed.run(drivers, shop)

    wait_for_late_writes(shop, ENRICHED, report)
    computed.assert_same(shop, report)
    assert enriched_rows(shop) == rows_from_scratch(shop)

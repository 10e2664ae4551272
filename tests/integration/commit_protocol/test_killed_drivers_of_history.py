"""Drivers die while they merge events, on time and late, into a table with history, and run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.documents.specs import bronze_document, silver_document
from tests.support.killed_drivers.batches import CleanBatch, run_clean_batch, run_successfully, wait_for_late_writes
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.places import BEFORE_INTENT, BEFORE_REPORT, IN_THE_WRITE, steps_before
from tests.support.killed_drivers.steps import Step, steps_done, steps_of
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order

pytestmark = pytest.mark.faults
BRONZE, SILVER = "bronze.orders", "silver.orders"
RULE = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
FIRST = [order(1, 5, 2), order(2, 7, 2), order(3, 1, 2), order(3, None, 4, op="delete"), order(4, None, 6, op="delete")]
SECOND = [
    order(1, 6, 9),
    order(1, 4, 1),
    order(2, None, 8, op="delete"),
    order(3, 9, 3),
    order(4, 2, 5),
    order(5, 1, 1),
    order(5, None, 3, op="delete"),
    order(6, -1, 1),
]
PLACES = (BEFORE_INTENT, Step.INTENT, IN_THE_WRITE, *steps_of(SILVER)[1:-1], BEFORE_REPORT)


@pytest.fixture(scope="module")
def merged(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> CleanBatch:
    """The batch of the second file, whose events come before, between and after those of the first."""
    shop = Lakehouse(tmp_path_factory.mktemp("history") / "shop")
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    silver = silver_document(
        stored_as_scd_type=2,
        sequence_by=["event_at"],
        apply_as_deletes="op = 'delete'",
        except_column_list=["event_at", "event_seq", "day"],
        expectations=[RULE],
    )
    shop.specs(bronze_document(columns=columns), silver)
    for name, events in (("a.json", FIRST), ("b.json", SECOND)):
        shop.deliver(1, name, events)
        run_successfully(drivers, shop, BRONZE)
        if name == "a.json":
            run_successfully(drivers, shop, SILVER)
    batch = run_clean_batch(drivers, shop, SILVER)
    periods = sorted((key, amount) for key, amount in shop.rows(SILVER, "order_id", "amount"))
    assert periods == [("o1", 4), ("o1", 5), ("o1", 6), ("o2", 7), ("o3", 1), ("o3", 9), ("o4", 2), ("o5", 1)]
    return batch


@pytest.mark.parametrize("place", PLACES)
def test_periods_are_those_of_an_undisturbed_run_wherever_the_driver_dies(
    drivers: Drivers, merged: CleanBatch, tmp_path: Path, place: str
) -> None:
    shop = copy_lakehouse(merged.before, tmp_path / "shop")
    merged.kill(drivers, shop, place)
    assert steps_done(shop, SILVER, merged.batch_seq) == steps_before(place, SILVER)

    report = merged.run(drivers, shop)

    if place == IN_THE_WRITE:
        wait_for_late_writes(shop, SILVER, report)
    merged.assert_same(shop, report)

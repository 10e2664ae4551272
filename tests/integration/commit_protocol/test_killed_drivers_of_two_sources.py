"""Drivers die while they merge new rows of two sources into one silver table, and run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.killed_drivers.batches import CleanBatch, run_clean_batch, run_successfully
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.places import steps_before
from tests.support.killed_drivers.steps import Step, steps_done
from tests.support.lakehouse import Lakehouse, copy_lakehouse
from tests.support.silver.two_shops import BRANCH, FEEDS, SILVER, WEB, ShopEvent, two_shops

pytestmark = pytest.mark.slow

FIRST = [ShopEvent(WEB, 1, 5, 1, 1), ShopEvent(WEB, 2, 5, 1, 2), ShopEvent(BRANCH, 3, 5, 1, 3)]
SECOND = [
    *(ShopEvent(BRANCH, 1, 6, 2, 4), ShopEvent(WEB, 1, 7, 0, 5), ShopEvent(BRANCH, 2, None, 2, 6)),
    *(ShopEvent(WEB, 3, -1, 3, 7), ShopEvent(BRANCH, 4, -2, 3, 8), ShopEvent(WEB, 5, 9, 3, 9)),
]


@pytest.fixture(scope="module")
def merged(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> CleanBatch:
    """The second batch: both sources bring a state, a refused row, and one of them a delete of the other's row."""
    shop = Lakehouse(tmp_path_factory.mktemp("two_shops") / "shop")
    shop.specs(*two_shops())
    for number, events in ((1, FIRST), (2, SECOND)):
        for source, feed in FEEDS.items():
            shop.deliver(number, "a.json", [event.row for event in events if event.source == source], feed=feed)
            run_successfully(drivers, shop, source, number)
        if number == 1:
            run_successfully(drivers, shop, SILVER)
    batch = run_clean_batch(drivers, shop, SILVER, 2)
    assert shop.rows(SILVER, "order_id", "amount", "shop") == [("o1", 6, BRANCH), ("o3", 5, BRANCH), ("o5", 9, WEB)]
    assert batch.report.rows.model_dump(exclude_defaults=True) == {
        "read": 6, "applied": 3, "superseded": 1, "quarantined": 2, "inserted": 1, "updated": 1, "deleted": 1
    }  # fmt: skip
    return batch


@pytest.mark.parametrize(
    "place",
    [
        Step.COMMIT,
        *(pytest.param(place, marks=pytest.mark.faults) for place in (Step.QUARANTINE, Step.TOMBSTONES)),
    ],
)
def test_the_rows_of_both_sources_are_those_of_an_undisturbed_run_wherever_the_driver_dies(
    drivers: Drivers, merged: CleanBatch, tmp_path: Path, place: Step
) -> None:
    shop = copy_lakehouse(merged.before, tmp_path / "shop")
    merged.kill(drivers, shop, place)
    assert steps_done(shop, SILVER, merged.batch_seq) == steps_before(place, SILVER)

    report = merged.run(drivers, shop)

    merged.assert_same(shop, report)

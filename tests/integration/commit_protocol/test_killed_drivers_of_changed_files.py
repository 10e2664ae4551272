"""Drivers die while they load a file that changed, beside its old rows or in their place, and run again."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.contracts.file_status import FileStatus
from include.errors import Outcome
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.killed_drivers.batches import (
    CleanBatch,
    run_clean_batch,
    run_successfully,
    tries,
    wait_for_late_writes,
)
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.outcome import states_of_files
from tests.support.killed_drivers.places import BEFORE_INTENT, BEFORE_REPORT, FILE_PLACES, IN_THE_WRITE, steps_before
from tests.support.killed_drivers.steps import Step, steps_done, steps_of
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order, tombstones_path

pytestmark = pytest.mark.faults
BRONZE, SILVER, GOLD = ("bronze.orders", "silver.orders", "gold.revenue_daily")
RULE = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
FIRST = [order(1, 5, 8), order(2, 7, 8), order(3, -1, 8), order(4, None, 9, op="delete"), "{broken"]
OTHER = [order(1, 3, 7), order(4, 9, 8), order(5, 2, 1)]
SECOND = [
    order(1, 4, 6),
    order(2, 8, 6),
    order(5, None, 2, op="delete"),
    order(6, 1, 1),
    order(7, -2, 1),
    "{also broken",
]
OF_RETRACTION = (BEFORE_INTENT, Step.INTENT, IN_THE_WRITE, *steps_of(SILVER)[1:-1], BEFORE_REPORT)


def shop_with_a_changed_file(drivers: Drivers, folder: Path, policy: str) -> Lakehouse:
    """Two files in all three layers; the first one has other content by now."""
    shop = Lakehouse(folder / "shop")
    source = {**bronze_document()["source"], "on_changed_file": policy}
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    silver = silver_document(apply_as_deletes="op = 'delete'", expectations=[RULE])
    shop.specs(bronze_document(source=source, columns=columns), silver, gold_document())
    shop.deliver(1, "a.json", FIRST)
    shop.deliver(1, "b.json", OTHER)
    for table in (BRONZE, SILVER, GOLD):
        run_successfully(drivers, shop, table)
    shop.deliver(1, "a.json", SECOND)
    return shop


@pytest.fixture(scope="module")
def appended(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> CleanBatch:
    """The batch that loads the new content beside the old one."""
    shop = shop_with_a_changed_file(drivers, tmp_path_factory.mktemp("appended"), "append_new_version")
    batch = run_clean_batch(drivers, shop, BRONZE)
    assert [len(rows) for rows in batch.end["rows"].values()] == [12, 2]
    return batch


@pytest.fixture(scope="module")
def replaced(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CleanBatch]:
    """Table -> the batch that follows the new content, which takes the old one's place."""
    shop = shop_with_a_changed_file(drivers, tmp_path_factory.mktemp("replaced"), "replace")
    batches = {table: run_clean_batch(drivers, shop, table) for table in (BRONZE, SILVER, GOLD)}
    assert dict(shop.rows(SILVER, "order_id", "amount")) == {"o1": 3, "o2": 8, "o4": 9, "o6": 1}
    assert shop.rows(GOLD, "orders", "revenue") == [(4, 21)]
    assert [row["record"] for row in shop.quarantine(BRONZE)] == ["{also broken"]
    assert ["o7" in row["record"] for row in shop.quarantine(SILVER)] == [True]
    tombstones = DeltaTable(str(tombstones_path(shop, SILVER))).to_pyarrow_table(columns=["order_id"])
    assert tombstones.to_pylist() == [{"order_id": "o5"}]
    return batches


@pytest.mark.parametrize("place", FILE_PLACES)
def test_a_new_version_of_a_file_stands_beside_the_old_one_once_wherever_its_driver_dies(
    drivers: Drivers, appended: CleanBatch, tmp_path: Path, place: str
) -> None:
    assert_ends_as_undisturbed(drivers, appended, copy_lakehouse(appended.before, tmp_path / "shop"), place)


@pytest.mark.parametrize("place", FILE_PLACES)
def test_a_file_is_replaced_once_in_all_layers_wherever_its_driver_dies(
    drivers: Drivers, replaced: dict[str, CleanBatch], tmp_path: Path, place: str
) -> None:
    shop = copy_lakehouse(replaced[BRONZE].before, tmp_path / "shop")
    assert_ends_as_undisturbed(drivers, replaced[BRONZE], shop, place)
    for batch in (replaced[SILVER], replaced[GOLD]):
        batch.assert_same(shop, batch.run(drivers, shop))


@pytest.mark.parametrize("place", OF_RETRACTION)
def test_the_keys_of_replaced_rows_are_worked_out_once_more_wherever_the_driver_of_silver_dies(
    drivers: Drivers, replaced: dict[str, CleanBatch], tmp_path: Path, place: str
) -> None:
    batch, shop = replaced[SILVER], copy_lakehouse(replaced[SILVER].before, tmp_path / "shop")
    batch.kill(drivers, shop, place)
    assert steps_done(shop, SILVER, batch.batch_seq) == steps_before(place, SILVER)

    report = batch.run(drivers, shop)

    if place == IN_THE_WRITE:
        wait_for_late_writes(shop, SILVER, report)
    batch.assert_same(shop, report)
    replaced[GOLD].assert_same(shop, replaced[GOLD].run(drivers, shop))


@pytest.mark.parametrize("place", [Step.COMMIT, Step.CLOSED])
def test_a_run_that_dies_between_the_batch_of_a_replaced_file_and_that_of_a_new_one_loses_neither(
    drivers: Drivers, replaced: dict[str, CleanBatch], tmp_path: Path, place: str
) -> None:
    shop = copy_lakehouse(replaced[BRONZE].before, tmp_path / "shop")
    shop.deliver(1, "new.json", [order(8, 8)])
    replaced[BRONZE].kill(drivers, shop, place)
    assert "new.json" not in str(tries(shop, BRONZE))

    assert run_successfully(drivers, shop, BRONZE).outcome == Outcome.COMMITTED

    batches = {state.path[-8:]: (state.status, state.batch_seq) for state in states_of_files(shop.paths, BRONZE)}
    loaded = FileStatus.LOADED
    assert batches == {"1/a.json": (loaded, 2), "1/b.json": (loaded, 1), "new.json": (loaded, 3)}
    assert shop.rows(BRONZE, "order_id") == [(f"o{number}",) for number in (1, 1, 2, 4, 5, 5, 6, 7, 8)]
    assert len(shop.quarantine(BRONZE)) == 1


def assert_ends_as_undisturbed(drivers: Drivers, batch: CleanBatch, shop: Lakehouse, place: str) -> None:
    """The driver of a bronze batch is killed at the place; another one ends the batch, as if nobody had died."""
    batch.kill(drivers, shop, place)
    assert steps_done(shop, BRONZE, batch.batch_seq) == steps_before(place, BRONZE)

    report = batch.run(drivers, shop)

    if place == IN_THE_WRITE:
        wait_for_late_writes(shop, BRONZE, report)
    batch.assert_same(shop, report)
    began_again = report.outcome == Outcome.COMMITTED
    assert batch.extra_tries(shop) == {int(began_again and place != BEFORE_INTENT)}

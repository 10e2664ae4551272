"""Drivers die while a new field becomes a column, at once or when it was approved, and run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from include.control.ledger.new_columns import ColumnState, NewColumns
from include.errors import Outcome
from tests.support.documents.specs import bronze_document
from tests.support.killed_drivers.batches import CleanBatch, run_clean_batch, run_successfully
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.places import (
    BEFORE_INTENT,
    COLUMNS_ADDED,
    COLUMNS_RECORDED,
    FILE_PLACES,
    FILES_LOADED,
    FILES_PLANNED,
    IN_THE_WRITE,
    steps_before,
)
from tests.support.killed_drivers.steps import Step, steps_done
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order

pytestmark = pytest.mark.faults
ORDERS = "bronze.orders"
OF_COLUMNS = (COLUMNS_RECORDED, COLUMNS_ADDED, *(place for place in FILE_PLACES if place != IN_THE_WRITE))
"""The write that finds the new fields ends there and then, long before a driver could die in it."""
BEFORE_THE_COLUMNS = (FILES_PLANNED, Step.INTENT)


def shop_with_new_fields(drivers: Drivers, folder: Path, **policy: str) -> Lakehouse:
    """One file is loaded, the next one brings two fields that no column is declared for."""
    shop = Lakehouse(folder / "shop")
    shop.specs(bronze_document(on_drift="evolve", **policy))
    shop.deliver(1, "a.json", [order(1, 5)])
    run_successfully(drivers, shop, ORDERS)
    shop.deliver(1, "b.json", [order(2, 6, colour="red"), "{broken", order(3, 7, shop=8)])
    return shop


@pytest.fixture(scope="module")
def evolved(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> CleanBatch:
    """The batch that finds the fields, makes columns of them, and loads them."""
    shop = shop_with_new_fields(drivers, tmp_path_factory.mktemp("evolved"))
    batch = run_clean_batch(drivers, shop, ORDERS)
    assert rows_of(shop) == [("o1", None, None), ("o2", "red", None), ("o3", None, "8")]
    assert said_of_columns(shop) == [("colour", "approved"), ("shop", "approved")]
    return batch


@pytest.mark.parametrize("place", OF_COLUMNS)
def test_new_fields_become_columns_once_wherever_the_driver_dies(
    drivers: Drivers, evolved: CleanBatch, tmp_path: Path, place: str
) -> None:
    shop = copy_lakehouse(evolved.before, tmp_path / "shop")
    evolved.kill(drivers, shop, place)
    assert steps_done(shop, ORDERS, evolved.batch_seq) == steps_before(place, ORDERS)
    assert bool(said_of_columns(shop)) == (place not in (BEFORE_INTENT, *BEFORE_THE_COLUMNS))

    report = evolved.run(drivers, shop)

    evolved.assert_same(shop, report)
    assert evolved.extra_tries(shop) == {int(place in BEFORE_THE_COLUMNS)}
    assert said_of_columns(shop) == [("colour", "approved"), ("shop", "approved")]
    assert rows_of(shop) == [("o1", None, None), ("o2", "red", None), ("o3", None, "8")]


@pytest.mark.parametrize("place", [Step.QUARANTINE, COLUMNS_RECORDED, FILES_LOADED])
def test_new_fields_are_proposed_once_wherever_the_driver_dies(drivers: Drivers, tmp_path: Path, place: str) -> None:
    shop = shop_with_new_fields(drivers, tmp_path, evolve="ask")
    assert drivers.run(shop, ORDERS, 1, dies=place).code < 0
    assert bool(said_of_columns(shop)) == (place != Step.QUARANTINE)
    report = run_successfully(drivers, shop, ORDERS)
    assert (report.outcome, report.rows.applied, report.rows.quarantined) == (Outcome.NO_OP, 2, 1)
    assert said_of_columns(shop) == [("colour", "proposed"), ("shop", "proposed")]
    assert shop.rows(ORDERS, "order_id", "_rescued") == [
        ("o1", None), ("o2", '{"colour":"red"}'), ("o3", '{"shop":"8"}')
    ]  # fmt: skip


@pytest.mark.parametrize("place", [COLUMNS_ADDED, Step.INTENT, Step.COMMIT])
def test_an_approved_field_and_a_refused_one_keep_to_their_answers_wherever_the_driver_dies(
    drivers: Drivers, tmp_path: Path, place: str
) -> None:
    shop = shop_with_new_fields(drivers, tmp_path, evolve="ask")
    said: dict[str, Any] = {"run_id": "by hand", "said_by": "ann"}
    NewColumns(shop.paths).record(ColumnState.APPROVED, ORDERS, ["colour"], **said)
    NewColumns(shop.paths).record(ColumnState.REFUSED, ORDERS, ["shop"], **said)
    assert drivers.run(shop, ORDERS, 1, dies=place).code < 0
    assert run_successfully(drivers, shop, ORDERS).rows.are_conserved
    assert shop.rows(ORDERS, "order_id", "colour", "_rescued") == [
        ("o1", None, None), ("o2", "red", None), ("o3", None, '{"shop":"8"}')
    ]  # fmt: skip
    assert said_of_columns(shop) == [("colour", "approved"), ("shop", "refused")]
    assert len(shop.quarantine(ORDERS)) == 1


def rows_of(shop: Lakehouse) -> list[tuple[Any, ...]]:
    return shop.rows(ORDERS, "order_id", "colour", "shop")


def said_of_columns(shop: Lakehouse) -> list[tuple[str, str]]:
    """All that was ever recorded of new columns: (column, state)."""
    path = str(shop.paths.ops("columns"))
    events = DeltaTable(path).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(path) else []
    return sorted((event["column"], event["event"]) for event in events)

"""Drivers of a rebuild are killed at every step: readers see one table or the other, and what comes next ends right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from millrace.control.ledger.resolution import table_id
from millrace.errors import ExitCode, Outcome
from tests.support.killed_drivers.batches import assert_killed
from tests.support.killed_drivers.drivers import AnyDrivers, Drivers, OwnProcess
from tests.support.killed_drivers.places import (
    BUILT,
    CANCELLED,
    IN_THE_SWITCH,
    REBUILD_DONE,
    REBUILD_PLACES,
    SWITCH_RECORDED,
    SWITCHED,
    UNDO_PLACES,
)
from tests.support.lakehouse import Lakehouse
from tests.support.silver.rebuilt_shop import (
    GOLD,
    SILVER,
    given_days,
    load_days,
    right_rows,
    visible_rows,
    write_shop_specs,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    write_shop_specs(shared)
    given_days(shared, 1, 2)
    return shared


@pytest.fixture(scope="module")
def wanted(made: Lakehouse) -> dict[str, Any]:
    """What three days leave behind where nothing is built anew."""
    assert visible_rows(made) == right_rows(2)
    return right_rows(3)


def assert_work_goes_on(shop: Lakehouse, wanted: dict[str, Any]) -> None:
    """The third day ends in the rows that it leaves where nothing was built anew, and nothing is left to do."""
    load_days(shop, 3)
    assert visible_rows(shop) == wanted
    assert [shop.run(table, 3).outcome for table in (SILVER, GOLD)] == [Outcome.NO_OP] * 2
    assert not list(shop.paths.rebuilds.iterdir())


def test_drivers_that_die_at_every_step_in_turn_end_what_was_asked_for(
    any_drivers: AnyDrivers, shop: Lakehouse, wanted: dict[str, Any]
) -> None:
    before, own = visible_rows(shop), [table_id(shop.paths.table(table)) for table in (SILVER, GOLD)]
    for place in REBUILD_PLACES:
        assert_killed(any_drivers.rebuild(shop, SILVER, dies=place, downstream=True))
        assert visible_rows(shop) == before, f"the same rows, of whichever table: {place}"

    built = [table_id(shop.paths.table(table)) for table in (SILVER, GOLD)]
    assert set(built).isdisjoint(own)
    cancelled = any_drivers.rebuild(shop, SILVER, cancel=True)
    assert (cancelled.report and cancelled.report.outcome) is Outcome.NO_OP, "it is done"
    assert any_drivers.rebuild(shop, SILVER).code == ExitCode.OK, "what the dead one left goes with the next one"
    assert_work_goes_on(shop, wanted)


@pytest.mark.faults
@pytest.mark.parametrize("place", [BUILT, SWITCH_RECORDED, IN_THE_SWITCH, SWITCHED, REBUILD_DONE])
@pytest.mark.parametrize("asked", ["resumed", "cancelled"])
def test_whatever_step_it_dies_at_work_goes_on(
    drivers: Drivers, shop: Lakehouse, wanted: dict[str, Any], place: str, asked: str
) -> None:
    assert_killed(drivers.rebuild(shop, SILVER, dies=place, downstream=True))
    load_days(shop, 3)
    assert visible_rows(shop) == wanted
    if asked == "cancelled" and place != REBUILD_DONE:
        assert_killed(OwnProcess().rebuild(shop, SILVER, dies=CANCELLED, cancel=True))
        ended = OwnProcess().rebuild(shop, SILVER, cancel=True)
        assert ended.code == ExitCode.OK, ended.output
    ended = OwnProcess().rebuild(shop, SILVER, downstream=True)
    assert ended.code == ExitCode.OK, ended.output
    assert ended.report is not None
    assert set(ended.report.details["tables"]) == {SILVER, GOLD}
    assert visible_rows(shop) == wanted


@pytest.mark.parametrize(
    ("kind", "places"),
    [("own_process", UNDO_PLACES), pytest.param("drivers", [IN_THE_SWITCH], marks=pytest.mark.faults)],
)
def test_drivers_that_die_at_every_step_of_undoing_in_turn_bring_back_what_was_there(
    request: pytest.FixtureRequest, shop: Lakehouse, wanted: dict[str, Any], kind: str, places: Sequence[str]
) -> None:
    drivers: AnyDrivers = OwnProcess() if kind == "own_process" else request.getfixturevalue(kind)
    before, own = visible_rows(shop), [table_id(shop.paths.table(table)) for table in (SILVER, GOLD)]
    write_shop_specs(shop, keys=["order_id", "day"])
    assert OwnProcess().rebuild(shop, SILVER, downstream=True).code == ExitCode.OK
    fresh = visible_rows(shop)
    write_shop_specs(shop)
    for place in places:
        assert_killed(drivers.rebuild(shop, SILVER, dies=place, undo=True, downstream=True))
        assert all(visible_rows(shop)[table] in (before[table], fresh[table]) for table in (SILVER, GOLD)), place
    ended = drivers.rebuild(shop, SILVER, undo=True, downstream=True)
    assert ended.code in (ExitCode.OK, ExitCode.NOT_READY), ended.output
    assert (visible_rows(shop), [table_id(shop.paths.table(table)) for table in (SILVER, GOLD)]) == (before, own)
    assert_work_goes_on(shop, wanted)

"""Drivers die at every step of taking back a refused version: the table ends as if it had never been there."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.spark.server import SparkServer
from millrace.control.gates.gates import Gates
from millrace.control.log.delta_log import latest_version
from millrace.errors import Outcome
from tests.support.killed_drivers.batches import assert_killed
from tests.support.killed_drivers.drivers import AnyDrivers, OwnProcess
from tests.support.killed_drivers.places import QUARANTINE_PUT_BACK, RESTORE_PLACES, RESTORED
from tests.support.lakehouse import Lakehouse, copy_lakehouse
from tests.support.silver.refusing_gate import GOLD, SILVER, content, content_without_refusal, silver

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(refusing: Lakehouse, tmp_path: Path) -> Lakehouse:
    return copy_lakehouse(refusing, tmp_path / "shop")


@pytest.fixture(scope="module")
def expected(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What both days leave behind where nothing is refused."""
    return content_without_refusal(Lakehouse(tmp_path_factory.mktemp("plain")))


def test_drivers_that_die_at_every_step_of_a_restore_in_turn_leave_the_certified_rows(
    any_drivers: AnyDrivers, shop: Lakehouse, expected: dict[str, object]
) -> None:
    before = content(shop)
    for place in RESTORE_PLACES:
        assert_killed(any_drivers.run(shop, SILVER, 2, dies=place))

    ended = any_drivers.run(shop, SILVER, 2)

    assert ended.report is not None, ended.output
    assert "The table was restored" in ended.report.message
    assert content(shop) == before
    assert_the_next_run_brings_all(shop, expected)


@pytest.mark.parametrize("place", [RESTORED, QUARANTINE_PUT_BACK])
def test_a_restore_that_died_is_ended_by_the_run_that_brings_what_was_taken_back(
    shop: Lakehouse, expected: dict[str, object], place: str
) -> None:
    assert_killed(OwnProcess().run(shop, SILVER, 2, dies=place))
    assert_the_next_run_brings_all(shop, expected)


def assert_the_next_run_brings_all(shop: Lakehouse, expected: dict[str, object]) -> None:
    shop.specs(silver(3))
    assert [report.outcome for report in shop.run_all(2, SILVER, GOLD)] == [Outcome.COMMITTED] * 2
    assert content(shop) == expected
    assert Gates(shop.paths).certified(SILVER) == latest_version(shop.paths.table(SILVER))

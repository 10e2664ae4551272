"""Drivers die at every step of taking back a refused version: the table ends as if it had never been there."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.spark.server import SparkServer
from include.control.gates.gates import Gates
from include.control.log.delta_log import commits_after
from include.errors import Outcome
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.places import RESTORE_PLACES
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


@pytest.mark.faults
def test_drivers_killed_at_every_step_of_a_restore_in_turn_leave_the_certified_rows(
    drivers: Drivers, shop: Lakehouse, expected: dict[str, object]
) -> None:
    before = content(shop)
    for place in RESTORE_PLACES:
        ended = drivers.run(shop, SILVER, 2, dies=place)
        assert ended.code == -9, f"{place}: {ended.output}"

    ended = drivers.run(shop, SILVER, 2)

    assert ended.report is not None, ended.output
    assert "The table was restored" in ended.report.message
    assert content(shop) == before
    shop.specs(silver(3))
    assert [report.outcome for report in shop.run_all(2, SILVER, GOLD)] == [Outcome.COMMITTED] * 2
    assert content(shop) == expected


@pytest.mark.parametrize("place", RESTORE_PLACES)
@pytest.mark.faults
def test_whatever_step_it_dies_at_the_next_run_brings_what_was_taken_back(
    drivers: Drivers, shop: Lakehouse, expected: dict[str, object], place: str
) -> None:
    ended = drivers.run(shop, SILVER, 2, dies=place)
    assert ended.code == -9, ended.output
    shop.specs(silver(3))

    shop.run_all(2, SILVER, GOLD)

    assert content(shop) == expected
    assert Gates(shop.paths).certified(SILVER) == max(
        commit.version for commit in commits_after(shop.paths.table(SILVER), -1)
    )

"""Real Spark drivers die at every step of the commit protocol and run again: nothing is lost, nothing is doubled.

They work on a Spark Connect server, which outlives them, or start a Spark of their own, which does not.
"""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from include.control.log.delta_log import latest_version
from include.errors import Outcome
from tests.support.killed_drivers.batches import CleanBatch, wait_for_late_writes
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.outcome import lost_attempts
from tests.support.killed_drivers.places import BEFORE_INTENT, IN_THE_WRITE, SLOW_WRITE_S, steps_before
from tests.support.killed_drivers.steps import Step, steps_done, steps_of
from tests.support.lakehouse import copy_lakehouse
from tests.support.waiting import wait_for

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")


def test_the_clean_run_has_every_kind_of_row_that_can_be_lost(clean: dict[str, CleanBatch]) -> None:
    assert clean[BRONZE].report.rows.model_dump(exclude_defaults=True) == {
        "read": 6, "applied": 4, "quarantined": 2, "inserted": 4
    }  # fmt: skip
    assert clean[SILVER].report.rows.model_dump(exclude_defaults=True) == {
        "read": 6, "applied": 3, "unchanged": 1, "superseded": 1, "quarantined": 1,
        "inserted": 1, "updated": 1, "deleted": 1,
    }  # fmt: skip
    assert clean[GOLD].report.rows.model_dump(exclude_defaults=True) == {
        "read": 2, "applied": 2, "inserted": 1, "updated": 1
    }  # fmt: skip
    assert [check.rule for check in clean[GOLD].report.checks]
    assert [len(rows) for rows in clean[BRONZE].end["rows"].values()] == [4, 2]
    assert [len(rows) for rows in clean[SILVER].end["rows"].values()] == [3, 2, 1]
    assert [len(rows) for rows in clean[GOLD].end["rows"].values()] == [2]
    ends = [batch.end for batch in clean.values()]
    assert "False" not in json.dumps([end["rows"] for end in ends])
    assert [end["files"] for end in ends] == [
        [("orders/date=2013-01-01/a.json", 1, 4, 3), ("orders/date=2013-01-01/b.json", 1, 2, 1)],
        [],
        [],
    ]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("table", TABLES)
def test_drivers_that_are_killed_after_every_step_in_turn_leave_what_one_clean_driver_leaves(
    any_drivers: Drivers, clean: dict[str, CleanBatch], tmp_path: Path, table: str
) -> None:
    batch, shop = clean[table], copy_lakehouse(clean[table].before, tmp_path / "shop")
    for place in (BEFORE_INTENT, *steps_of(table)):
        batch.kill(any_drivers, shop, place)
        assert steps_done(shop, table, batch.batch_seq) == steps_before(place, table)

    report = batch.run(any_drivers, shop)

    assert report.outcome == Outcome.NO_OP
    assert lost_attempts(shop.paths, table) == ["intent"]
    batch.assert_same(shop, report)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "place"),
    [
        (SILVER, Step.COMMIT),
        pytest.param(SILVER, Step.QUARANTINE, marks=pytest.mark.faults),
        pytest.param(BRONZE, Step.COMMIT, marks=pytest.mark.faults),
        pytest.param(GOLD, Step.COMMIT, marks=pytest.mark.faults),
    ],
)
def test_one_driver_finishes_all_that_a_killed_one_left_undone(
    any_drivers: Drivers, clean: dict[str, CleanBatch], tmp_path: Path, table: str, place: Step
) -> None:
    batch, shop = clean[table], copy_lakehouse(clean[table].before, tmp_path / "shop")
    batch.kill(any_drivers, shop, place)
    assert steps_done(shop, table, batch.batch_seq)[-1] == place

    report = batch.run(any_drivers, shop)

    assert report.outcome == Outcome.NO_OP
    assert lost_attempts(shop.paths, table) == []
    batch.assert_same(shop, report)


@pytest.mark.slow
@pytest.mark.parametrize(
    "patient",
    [
        pytest.param(False, id="at once"),
        pytest.param(True, id="once the server has committed", marks=pytest.mark.faults),
    ],
)
def test_a_merge_that_goes_on_after_its_driver_has_died_is_one_batch_with_the_next_driver(
    drivers: Drivers, clean: dict[str, CleanBatch], tmp_path: Path, patient: bool
) -> None:
    batch, shop = clean[SILVER], copy_lakehouse(clean[SILVER].before, tmp_path / "shop")
    silver = shop.paths.table(SILVER)
    batch.kill(drivers, shop, IN_THE_WRITE)
    assert steps_done(shop, SILVER, 2) == [Step.INTENT], "the server was done before the driver died"
    if patient:
        wait_for(lambda: latest_version(silver) == batch.report.version)

    report = batch.run(drivers, shop)

    wait_for_late_writes(shop, SILVER, report)
    assert report.outcome == Outcome.NO_OP or not patient
    batch.assert_same(shop, report)


@pytest.mark.slow
@pytest.mark.parametrize(
    "table", [SILVER, pytest.param(BRONZE, marks=pytest.mark.faults), pytest.param(GOLD, marks=pytest.mark.faults)]
)
def test_a_write_whose_spark_ends_with_its_driver_is_one_batch_with_the_next_driver(
    classic_drivers: Drivers, clean: dict[str, CleanBatch], tmp_path: Path, table: str
) -> None:
    batch, shop = clean[table], copy_lakehouse(clean[table].before, tmp_path / "shop")
    batch.kill(classic_drivers, shop, IN_THE_WRITE)
    assert steps_done(shop, table, batch.batch_seq) == [Step.INTENT], "Spark was done before the driver died"

    batch.assert_same(shop, batch.run(classic_drivers, shop))


@pytest.mark.slow
def test_a_driver_told_to_end_interrupts_what_the_server_runs_for_it(
    drivers: Drivers, clean: dict[str, CleanBatch], tmp_path: Path
) -> None:
    shop = copy_lakehouse(clean[BRONZE].before, tmp_path / "shop")
    ended = drivers.run(shop, BRONZE, 1, dies=IN_THE_WRITE, by=signal.SIGTERM)
    assert ended.code == 128 + signal.SIGTERM, ended.output
    time.sleep(SLOW_WRITE_S)
    assert steps_done(shop, BRONZE, 1) == [Step.INTENT], "the server went on and committed"

    clean[BRONZE].assert_same(shop, clean[BRONZE].run(drivers, shop))

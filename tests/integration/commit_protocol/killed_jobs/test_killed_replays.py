"""`lakehouse replay` and its drivers die at every step: a failed file that was mended is loaded exactly once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from embedded.airflow.standalone import clean_environment
from embedded.spark.server import SparkServer
from include.cli.replay import record_replays, replays
from include.contracts.file_status import FileStatus
from include.control.ledger.ledger import Ledger
from include.errors import ExitCode, Outcome
from include.settings import PROJECT, Settings
from tests.support.documents.specs import bronze_document
from tests.support.killed_drivers.batches import (
    CleanBatch,
    assert_killed,
    run_clean_batch,
    run_successfully,
    wait_for_late_writes,
)
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.outcome import states_of_files
from tests.support.killed_drivers.places import (
    BEFORE_INTENT,
    BEFORE_REPLAY,
    FILE_PLACES,
    FIRST_REPLAY_RECORDED,
    IN_THE_WRITE,
    REPLAYS_RECORDED,
    steps_before,
)
from tests.support.killed_drivers.steps import Step, steps_done
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.waiting import wait_for

pytestmark = pytest.mark.faults
ORDERS = "bronze.orders"
BROKEN, REFUSED = FAILED = ("orders/date=2013-01-01/b.json", "orders/date=2013-01-02/c.json")
"""Mended by its source, and by the spec: the second one was given up, and only a replay looks at it again."""
LOADED_ONCE = [("o1", 6), ("o2", 7), ("o3", 8), ("o4", 9)]


@pytest.fixture(scope="module")
def mended(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> Lakehouse:
    """One file that is loaded, and two that failed and are mended by now."""
    shop = Lakehouse(tmp_path_factory.mktemp("mended") / "shop")
    source = {**bronze_document()["source"], "max_attempts_per_file": 1}
    shop.specs(bronze_document(source=source, on_drift="fail"))
    shop.deliver(1, "a.json", [order(2, 7)])
    shop.deliver(1, "b.json", "PAR1 is no JSON line\n")
    shop.deliver(2, "c.json", [order(1, 6, colour="red"), "{broken", order(4, 9)])
    for number in (1, 2):
        assert drivers.run(shop, ORDERS, number).code == ExitCode.BAD_INPUT
        assert run_successfully(drivers, shop, ORDERS, number).outcome == Outcome.NO_OP, "it is given up"
    shop.deliver(1, "b.json", [order(3, 8)])
    shop.specs(bronze_document(source=source, on_drift="rescue"))
    assert [state.status for state in states_of_files(shop.paths, ORDERS)] == [
        FileStatus.LOADED, FileStatus.FAILED, FileStatus.FAILED
    ]  # fmt: skip
    return shop


@pytest.fixture(scope="module")
def replayed(drivers: Drivers, mended: Lakehouse, tmp_path_factory: pytest.TempPathFactory) -> CleanBatch:
    """The load of the file that was given up, once its replay is recorded."""
    shop = copy_lakehouse(mended, tmp_path_factory.mktemp("replayed") / "shop")
    settings = Settings(root=shop.folder / "lake", tables=shop.folder / "tables")
    record_replays(replays([REFUSED], settings), settings)
    batch = run_clean_batch(drivers, shop, ORDERS, 2)
    assert batch.report.rows.model_dump(exclude_defaults=True) == {
        "read": 3, "applied": 2, "quarantined": 1, "inserted": 2
    }  # fmt: skip
    return batch


@pytest.fixture
def shop(mended: Lakehouse, tmp_path: Path) -> Lakehouse:
    """A copy of the lakehouse with its mended files."""
    return copy_lakehouse(mended, tmp_path / "shop")


@pytest.mark.parametrize("place", FILE_PLACES)
def test_a_replayed_file_is_loaded_once_wherever_its_driver_dies(
    drivers: Drivers, replayed: CleanBatch, tmp_path: Path, place: str
) -> None:
    shop = copy_lakehouse(replayed.before, tmp_path / "shop")
    replayed.kill(drivers, shop, place)
    of_the_failure = [Step.INTENT]
    assert steps_done(shop, ORDERS, replayed.batch_seq) == (steps_before(place, ORDERS) or of_the_failure)

    report = replayed.run(drivers, shop)

    if place == IN_THE_WRITE:
        wait_for_late_writes(shop, ORDERS, report)
    replayed.assert_same(shop, report)
    began_again = report.outcome == Outcome.COMMITTED
    assert replayed.extra_tries(shop) == {int(began_again and place != BEFORE_INTENT)}


@pytest.mark.parametrize("place", [BEFORE_REPLAY, FIRST_REPLAY_RECORDED])
def test_a_replay_that_dies_before_all_is_recorded_is_made_good_by_the_next(
    drivers: Drivers, shop: Lakehouse, place: str
) -> None:
    assert_killed(drivers.command(shop, "replay", *FAILED, dies=place))
    assert len(Ledger(shop.paths)._files.events(ORDERS, event="replayed")) == (place == FIRST_REPLAY_RECORDED)

    again = drivers.command(shop, "replay", *FAILED)

    assert again.code == ExitCode.OK, again.output
    assert_all_loaded_once(shop)
    assert "there is nothing to run" in drivers.command(shop, "replay", *FAILED).output


def test_a_replay_that_dies_once_it_is_recorded_is_made_good_by_ordinary_runs(
    drivers: Drivers, shop: Lakehouse
) -> None:
    assert_killed(drivers.command(shop, "replay", *FAILED, dies=REPLAYS_RECORDED))
    assert len(Ledger(shop.paths)._files.events(ORDERS, event="replayed")) == len(FAILED)
    for number in (1, 2):
        assert run_successfully(drivers, shop, ORDERS, number).outcome == Outcome.COMMITTED
    assert_all_loaded_once(shop)


def test_a_replay_beside_the_driver_of_one_that_died_loads_nothing_twice(
    drivers: Drivers, server: SparkServer, shop: Lakehouse
) -> None:
    command = [Path(sys.executable).parent / "lakehouse", "replay", REFUSED]
    known = {**clean_environment(), **server.client_env(), **shop.environment()}
    of_the_failure = len(planned(shop))
    dying = subprocess.Popen(command, env=known, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: len(planned(shop)) > of_the_failure)
    orphans = psutil.Process(dying.pid).children(recursive=True)
    dying.kill()
    dying.wait()
    assert orphans, "no driver outlived the command"

    again = drivers.command(shop, "replay", *FAILED)

    assert again.code == ExitCode.OK, again.output
    psutil.wait_procs(orphans, timeout=60)
    assert_all_loaded_once(shop)


def planned(shop: Lakehouse) -> list[dict[str, Any]]:
    return Ledger(shop.paths)._files.events(ORDERS, event="planned")


def assert_all_loaded_once(shop: Lakehouse) -> None:
    """Every record is in bronze or in its quarantine, once, and the ledger says so."""
    assert shop.rows(ORDERS, "order_id", "amount") == LOADED_ONCE
    assert [row["record"] for row in shop.quarantine(ORDERS)] == ["{broken"]
    found = [
        (state.path[-6:], state.status, state.rows.model_dump(exclude_defaults=True) if state.rows else None)
        for state in states_of_files(shop.paths, ORDERS)
    ]
    assert found == [
        ("a.json", FileStatus.LOADED, {"read": 1, "written": 1}),
        ("b.json", FileStatus.LOADED, {"read": 1, "written": 1}),
        ("c.json", FileStatus.LOADED, {"read": 3, "written": 2, "rescued": 1, "quarantined": 1}),
    ]

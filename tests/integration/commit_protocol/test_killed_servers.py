"""A Spark server that dies under its driver: the driver says so in time, and the next one ends the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.spark.running import running_server
from embedded.spark.server import NAME, SparkServer
from embedded.stack_processes import recorded
from include.errors import ExitCode
from tests.support.killed_drivers.batches import CleanBatch
from tests.support.killed_drivers.drivers import DriverEnd, Drivers
from tests.support.killed_drivers.places import IN_THE_WRITE
from tests.support.killed_drivers.steps import Step, steps_done
from tests.support.lakehouse import copy_lakehouse
from tests.support.waiting import wait_for

pytestmark = pytest.mark.faults
BRONZE = "bronze.orders"
SERVER_GONE_S = 60
Clean = Callable[[str], CleanBatch]


@pytest.fixture(scope="module")
def doomed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    """A server of these tests alone, which each of them starts again."""
    with running_server(tmp_path_factory.mktemp("doomed") / "spark") as server:
        yield server


@pytest.fixture
def drivers_of_doomed(doomed: SparkServer, tmp_path: Path) -> Iterator[Drivers]:
    """Runs job drivers against it."""
    with Drivers({**clean_environment(), **doomed.client_env()}, tmp_path / "driver.log") as drivers:
        yield drivers


def test_a_driver_whose_server_dies_says_so_in_time_and_runs_well_on_the_next_one(
    drivers_of_doomed: Drivers, doomed: SparkServer, clean: Clean, tmp_path: Path
) -> None:
    batch, shop = clean("first files"), copy_lakehouse(clean("first files").before, tmp_path / "shop")
    ended = drivers_of_doomed.run(shop, BRONZE, dies=IN_THE_WRITE, victim=pid_of(doomed))
    assert not doomed.is_alive(), "the server still lives"
    assert_server_missed(ended, doomed)
    assert steps_done(shop, BRONZE, 1) == [Step.INTENT]

    doomed.start(clean_environment())
    batch.assert_same(shop, batch.run(drivers_of_doomed, shop))


def test_a_write_is_not_repeated_at_a_server_that_took_the_place_of_a_dead_one(
    drivers_of_doomed: Drivers, doomed: SparkServer, clean: Clean, tmp_path: Path
) -> None:
    batch, shop = clean("first files"), copy_lakehouse(clean("first files").before, tmp_path / "shop")
    dead = pid_of(doomed)
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(drivers_of_doomed.run, shop, BRONZE, dies=IN_THE_WRITE, victim=dead)
        wait_for(lambda: not doomed.is_alive())
        doomed.start(clean_environment())
        ended = ending.result()
    assert pid_of(doomed) != dead
    assert_server_missed(ended, doomed)
    assert steps_done(shop, BRONZE, 1) == [Step.INTENT]

    batch.assert_same(shop, batch.run(drivers_of_doomed, shop))


def pid_of(server: SparkServer) -> int:
    """The process of the server, which must live."""
    process = recorded(server.home, NAME)
    assert process is not None
    return process.pid


def assert_server_missed(ended: DriverEnd, server: SparkServer) -> None:
    """The driver ended in time, and says which server it misses."""
    assert ended.code == ExitCode.SPARK_UNAVAILABLE, ended.output
    assert ended.took_s < SERVER_GONE_S
    assert ended.report is not None
    assert f"sc://localhost:{server.port} died, or was restarted" in ended.report.message

"""What the tests of jobs that die share: processes to kill, and batches that nobody disturbed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.spark.server import SparkServer
from millrace.settings import Settings
from millrace.spark_conf import launch_conf
from tests.support.killed_drivers.batches import CleanBatch, run_scenario
from tests.support.killed_drivers.drivers import AnyDrivers, Drivers, OwnProcess

CLASSIC_MASTER = "local[2]"


@pytest.fixture(scope="session")
def pair(
    drivers: Drivers, server: SparkServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Drivers, Drivers]]:
    """Two that run drivers beside each other."""
    log = tmp_path_factory.mktemp("pair") / "driver.log"
    with Drivers({**clean_environment(), **server.client_env()}, log) as other:
        yield drivers, other


@pytest.fixture(scope="session")
def classic_drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Runs job drivers each of which starts a Spark of its own, as under spark-submit, that ends with it."""
    log = tmp_path_factory.mktemp("classic") / "driver.log"
    conf = launch_conf(Settings().jars, CLASSIC_MASTER) | {"spark.sql.warehouse.dir": str(log.parent)}
    words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    submitted = shlex.join(["--master", CLASSIC_MASTER, "--driver-memory", "1g", *words, "pyspark-shell"])
    with Drivers({**clean_environment(), "PYSPARK_SUBMIT_ARGS": submitted}, log) as drivers:
        yield drivers


@pytest.fixture(params=["died", pytest.param("killed", marks=pytest.mark.faults)])
def any_drivers(request: pytest.FixtureRequest) -> AnyDrivers:
    """Those that die by an exception in the test's own process, and those that are killed."""
    found: AnyDrivers = OwnProcess() if request.param == "died" else request.getfixturevalue("drivers")
    return found


@pytest.fixture(scope="session")
def clean(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CleanBatch]:
    """Batches of scenarios, each made when it is asked for first."""
    return cache(lambda name: run_scenario(name, tmp_path_factory.mktemp("clean")))

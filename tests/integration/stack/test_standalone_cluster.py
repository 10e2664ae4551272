"""The flights through Airflow on a Spark standalone cluster, one of whose workers dies half way."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from demo.source_system import lay_out
from embedded.address import Address
from embedded.airflow.api import AirflowApi
from embedded.home import Home
from embedded.stack import Stack, remaining_processes
from include.settings import PROJECT, Settings
from tests.e2e.days import FIRST, SECOND
from tests.e2e.waiting import drivers, wait_for
from tests.support.airflow.homes import new_homes
from tests.support.right_tables import TABLES, assert_rows_of_source
from tests.support.spark.spark_cluster import SparkCluster, spark_cluster

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]

PATIENCE_S = 1500
"""Each of eight tables starts a driver and two executors of its own, all of them on this machine."""


@pytest.fixture(scope="module")
def new_home() -> Iterator[Callable[[], Home]]:
    with new_homes() as made:
        yield made


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("lakehouse")
    settings = Settings(root=folder / "lakehouse", landing=str(folder / "landing"))
    lay_out(Path(settings.landing), FIRST, SECOND + timedelta(days=1))
    return settings


@pytest.fixture(scope="module")
def cluster(new_home: Callable[[], Home]) -> Iterator[SparkCluster]:
    home = new_home()
    home.prepare()
    with spark_cluster(home) as running:
        yield running
    assert remaining_processes(home) == []


@pytest.fixture(scope="module")
def stack(
    new_home: Callable[[], Home], lakehouse: Settings, cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    home, dags = new_home(), tmp_path_factory.mktemp("airflow") / "dags"
    shutil.copytree(PROJECT / "dags", dags)
    with Stack(home, lakehouse, Address.free(home, lakehouse), dags, connection=cluster.connection) as running:
        yield running
    assert remaining_processes(home) == []


@pytest.fixture(scope="module")
def api(stack: Stack) -> Iterator[AirflowApi]:
    with stack.api() as client:
        client.wait_for_dag("flights")
        client.set_paused("flights", False)
        yield client


def test_days_of_flights_end_in_the_right_tables_also_if_a_worker_dies(
    api: AirflowApi, stack: Stack, cluster: SparkCluster, lakehouse: Settings
) -> None:
    assert api.wait_for_run(api.trigger("flights", {"day": str(FIRST)}), PATIENCE_S).state == "success"

    assert_rows_of_source(lakehouse, FIRST, FIRST)
    assert len(cluster.state()["completedapps"]) >= TABLES
    logs = [list((cluster.home.spark / worker).glob("app-*/*/stderr")) for worker in cluster.workers]
    assert min(map(len, logs)) >= TABLES, "each table was run on both workers"
    kept = [log for log in lakehouse.run_paths.driver_logs.rglob("*.log") if log.stat().st_size]
    assert len(kept) >= TABLES, "what each driver said"

    run, doomed = api.trigger("flights", {"day": str(SECOND)}), cluster.workers[0]
    wait_for(lambda: drivers(stack.home, "silver.flights") and cluster.executors(doomed))
    cluster.kill(doomed)
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert cluster.state()["aliveworkers"] == 1
    assert_rows_of_source(lakehouse, FIRST, SECOND)

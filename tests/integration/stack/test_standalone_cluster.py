"""The flights through Airflow on a Spark standalone cluster, one of whose workers dies half way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from demo.source_system import lay_out
from embedded.address import Address
from embedded.airflow.api import AirflowApi
from embedded.home import Home, free_port
from embedded.stack import Stack, remaining_processes
from embedded.stack_processes import recorded, spawn, stop
from millrace.driver_environment import driver_environment, own_spark
from millrace.settings import Settings
from millrace.spark_location import spark_home
from tests.e2e.days import FIRST, SECOND
from tests.e2e.waiting import drivers, wait_for
from tests.support.airflow.airflow_home import copy_dags
from tests.support.airflow.homes import new_home
from tests.support.right_tables import TABLES, assert_rows_of_source

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]

PATIENCE_S = 1500
"""Each of eight tables starts a driver and two executors of its own, all of them on this machine."""
MASTER, WORKERS = "spark-master", ("spark-worker-1", "spark-worker-2")
_CLASS = "org.apache.spark.deploy"


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster.

    Attributes:
        home: the folder of its logs and pids.
        port: the port of its master.
        web: the port of the master's page.
    """

    home: Home
    port: int
    web: int

    @property
    def connection(self) -> str:
        """The Airflow connection by which jobs are submitted to it, as JSON."""
        return f'{{"conn_type": "spark", "host": "spark://127.0.0.1", "port": {self.port}}}'

    def state(self) -> dict[str, Any]:
        """Return the master's report of its workers and applications."""
        report: dict[str, Any] = httpx.get(f"http://127.0.0.1:{self.web}/json/", timeout=10).json()
        return report

    def executors(self, worker: str) -> list[psutil.Process]:
        """Return the present executors of a worker."""
        process = recorded(self.home, worker)
        return process.children(recursive=True) if process else []

    def kill(self, worker: str) -> None:
        """Kill a worker and its executors, as if its machine failed."""
        process = recorded(self.home, worker)
        assert process is not None, f"{worker} does not run"
        for victim in (process, *process.children(recursive=True)):
            victim.kill()


def _alive_workers(cluster: SparkCluster) -> int:
    try:
        return int(cluster.state()["aliveworkers"])
    except httpx.HTTPError:
        return 0  # the master is not up yet


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("lakehouse")
    settings = Settings(root=folder / "lakehouse", landing=str(folder / "landing"))
    lay_out(Path(settings.landing), FIRST, SECOND + timedelta(days=1))
    return settings


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    """A cluster whose applications get a core of each worker."""
    with new_home() as home:
        home.prepare()
        cluster = SparkCluster(home, free_port(), free_port())
        # An application would take all cores, and let the next one wait.
        one_core_each = {"SPARK_MASTER_OPTS": f"-Dspark.deploy.defaultCores={len(WORKERS)}"}
        environment = driver_environment(os.environ, "local", {**own_spark(), **one_core_each})
        spark_class = str(spark_home() / "bin" / "spark-class")
        host = ("--host", "127.0.0.1")
        try:
            master = [*host, "--port", str(cluster.port), "--webui-port", str(cluster.web)]
            spawn(home, MASTER, [spark_class, f"{_CLASS}.master.Master", *master], environment, home.spark)
            for name in WORKERS:
                limits = ("--cores", "2", "--memory", "3g", "--webui-port", "0", "--work-dir", str(home.spark / name))
                worker = [*host, *limits, f"spark://127.0.0.1:{cluster.port}"]
                spawn(home, name, [spark_class, f"{_CLASS}.worker.Worker", *worker], environment, home.spark)
            wait_for(lambda: _alive_workers(cluster) == len(WORKERS), patience_s=120)
            yield cluster
        finally:
            for name in (*WORKERS, MASTER):
                stop(home, name, patience_s=20)
        assert remaining_processes(home) == []


@pytest.fixture(scope="module")
def stack(lakehouse: Settings, cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    dags = copy_dags(tmp_path_factory.mktemp("airflow") / "dags")
    with new_home() as home:
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
    logs = [list((cluster.home.spark / worker).glob("app-*/*/stderr")) for worker in WORKERS]
    assert min(map(len, logs)) >= TABLES, "each table was run on both workers"
    kept = [log for log in lakehouse.run_paths.driver_logs.rglob("*.log") if log.stat().st_size]
    assert len(kept) >= TABLES, "what each driver said"

    run, doomed = api.trigger("flights", {"day": str(SECOND)}), WORKERS[0]
    wait_for(lambda: drivers(stack.home, "silver.flights") and cluster.executors(doomed))
    cluster.kill(doomed)
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert cluster.state()["aliveworkers"] == 1
    assert_rows_of_source(lakehouse, FIRST, SECOND)

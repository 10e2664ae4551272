"""A Spark standalone cluster on loopback: one master and some workers, each in its own process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from embedded.home import Home, free_port
from embedded.stack_processes import recorded, spawn, stop
from include.driver_environment import driver_environment, own_spark
from include.spark_location import spark_home
from tests.e2e.waiting import wait_for

MASTER = "spark-master"
_CLASS = "org.apache.spark.deploy"


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster.

    Attributes:
        home: the folder of its logs and pids.
        port: the port of its master.
        web: the port of the master's page.
        workers: the names of its workers' processes.
    """

    home: Home
    port: int
    web: int
    workers: tuple[str, ...]

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


@contextmanager
def spark_cluster(home: Home, workers: int = 2) -> Iterator[SparkCluster]:
    """Run a cluster whose applications get a core of each worker; end all its processes afterwards."""
    names = tuple(f"spark-worker-{number + 1}" for number in range(workers))
    cluster = SparkCluster(home, free_port(), free_port(), names)
    # An application would take all cores, and let the next one wait.
    one_core_each = {"SPARK_MASTER_OPTS": f"-Dspark.deploy.defaultCores={workers}"}
    environment = driver_environment(os.environ, "local", {**own_spark(), **one_core_each})
    spark_class = str(spark_home() / "bin" / "spark-class")
    host = ("--host", "127.0.0.1")
    try:
        master = [*host, "--port", str(cluster.port), "--webui-port", str(cluster.web)]
        spawn(home, MASTER, [spark_class, f"{_CLASS}.master.Master", *master], environment, home.spark)
        for name in names:
            limits = ("--cores", "2", "--memory", "3g", "--webui-port", "0", "--work-dir", str(home.spark / name))
            worker = [*host, *limits, f"spark://127.0.0.1:{cluster.port}"]
            spawn(home, name, [spark_class, f"{_CLASS}.worker.Worker", *worker], environment, home.spark)
        wait_for(lambda: _alive_workers(cluster) == workers, patience_s=120)
        yield cluster
    finally:
        for name in (*names, MASTER):
            stop(home, name, patience_s=20)


def _alive_workers(cluster: SparkCluster) -> int:
    try:
        return int(cluster.state()["aliveworkers"])
    except httpx.HTTPError:
        return 0  # the master is not up yet

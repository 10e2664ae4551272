"""The command of the Connect server on the cluster: the settings of the local one, with executors on the workers."""

from __future__ import annotations

from pathlib import Path

from containers.spark_connect import HOST, MASTER, command
from include.spark_conf import LOG_STORES


def test_the_server_keeps_commits_safe_and_is_reached_by_workers_and_clients(tmp_path: Path) -> None:
    (tmp_path / "delta.jar").touch()
    line = command(tmp_path, 4, "2g", "3g")
    assert line[line.index("--master") + 1] == MASTER
    assert line[line.index("--driver-memory") + 1] == "2g"
    settings = dict(line[at + 1].split("=", 1) for at, part in enumerate(line) if part == "--conf")
    assert LOG_STORES.items() <= settings.items(), "no commit can get lost on the cluster"
    assert settings["spark.driver.extraClassPath"] == settings["spark.executor.extraClassPath"] == f"{tmp_path}/*"
    assert "spark.jars" not in settings, "executors have the jars at the same place: nothing is shipped"
    assert settings["spark.driver.host"] == HOST
    assert settings["spark.connect.grpc.binding.address"] == "0.0.0.0"
    assert settings["spark.executor.memory"] == "3g"
    assert settings["spark.sql.shuffle.partitions"] == "4", "the cores of all workers"

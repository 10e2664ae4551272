"""The command of the Connect server on the cluster: the settings of the local one, with executors on the workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from containers.spark_connect import HOST, MASTER, command
from include.spark_conf import LOG_STORES


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "delta.jar").touch()
    line = command(tmp_path, 4, "2g", "3g")
    assert line[line.index("--master") + 1] == MASTER
    assert line[line.index("--driver-memory") + 1] == "2g"
    pairs = [line[at + 1] for at, part in enumerate(line) if part == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def test_no_commit_can_get_lost_on_the_cluster(settings: dict[str, str]) -> None:
    assert LOG_STORES.items() <= settings.items()


def test_executors_have_the_jars_of_the_driver_at_the_same_place(settings: dict[str, str], tmp_path: Path) -> None:
    assert settings["spark.driver.extraClassPath"] == settings["spark.executor.extraClassPath"] == f"{tmp_path}/*"
    assert "spark.jars" not in settings, "nothing is shipped"


def test_workers_and_clients_of_other_containers_reach_the_server(settings: dict[str, str]) -> None:
    assert settings["spark.driver.host"] == HOST
    assert settings["spark.connect.grpc.binding.address"] == "0.0.0.0"
    assert settings["spark.executor.memory"] == "3g"


def test_rows_are_partitioned_by_the_cores_of_all_workers(settings: dict[str, str]) -> None:
    assert settings["spark.sql.shuffle.partitions"] == "4"

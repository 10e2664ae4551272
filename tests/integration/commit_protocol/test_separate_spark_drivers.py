"""Drivers whose Spark is their own, as under spark-submit: what they lose on the way, they find out and make good."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from embedded.airflow.standalone import clean_environment
from include.settings import PROJECT
from tests.support.airflow.homes import new_homes
from tests.support.spark.spark_cluster import SparkCluster, spark_cluster

pytestmark = pytest.mark.slow

PATIENCE_S = 900


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    """Executors that are processes of their own."""
    with new_homes() as new_home:
        home = new_home()
        home.prepare()
        with spark_cluster(home) as running:
            yield running


@pytest.fixture(scope="module", params=["threads", pytest.param("processes", marks=pytest.mark.faults)])
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a driver says of its runs: on two threads of its own, and with executors that it kills in the middle."""
    has_threads = request.param == "threads"
    master = "local[2]" if has_threads else f"spark://127.0.0.1:{request.getfixturevalue('cluster').port}"
    command = [sys.executable, "-m", "tests.support.spark.classic_driver", str(tmp_path_factory.mktemp("own")), master]
    driver = subprocess.run(
        command, cwd=PROJECT, env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert driver.stdout, driver.stderr[-3000:]
    told: dict[str, Any] = json.loads(driver.stdout)
    return told


def test_a_batch_of_gold_whose_number_was_taken_ends_though_spark_never_ran_its_write(ended: dict[str, Any]) -> None:
    outcome, message, attempts = ended["ended"]["fenced"]
    assert outcome == "no_op", message
    assert attempts == 1
    assert ended["ended"]["rival"][0] == "committed"


def test_a_batch_whose_frozen_rows_are_lost_is_planned_again_in_the_same_run(ended: dict[str, Any]) -> None:
    outcome, message, attempts = ended["ended"]["without frozen rows"]
    assert (outcome, attempts) == ("committed", 2), message
    assert ended["rows"]["silver.orders"] == [["o1", 6], ["o2", 7], ["o3", 1]]


def test_a_measure_may_be_a_map_on_every_run(ended: dict[str, Any]) -> None:
    assert ended["ended"]["gold.revenue_daily"][0] == "committed"
    (row,) = ended["rows"]["gold.revenue_daily"]
    assert (row[0], dict(row[1])) == (3, {"o1": 6, "o2": 7, "o3": 1})

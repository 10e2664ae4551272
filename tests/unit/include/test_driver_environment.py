"""A driver finds its parts in any environment, and none of Airflow's secrets."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from include.driver_environment import TOKEN, driver_environment, own_spark
from include.settings import PROJECT
from include.spark_location import spark_home

MASTERS = ["local[2]", "spark://h:7077", "yarn", "sc://localhost:15002"]
SECRETS = {
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://user:secret@db/airflow",
    "AIRFLOW_CONN_SPARK_DEFAULT": '{"password": "secret"}',
    "AIRFLOW_VAR_KEY": "secret",
}


@pytest.mark.parametrize("master", MASTERS)
def test_no_driver_sees_airflows_secrets(master: str) -> None:
    environment = driver_environment({**SECRETS, "AIRFLOW_CTX_DAG_ID": "flights", "HOME": "/h"}, master, {})
    assert "secret" not in str(environment)
    assert (environment["AIRFLOW_CTX_DAG_ID"], environment["HOME"]) == ("flights", "/h")


@pytest.mark.parametrize("master", MASTERS)
def test_every_driver_finds_the_project_first(master: str) -> None:
    environment = driver_environment({"PYTHONPATH": "/other"}, master, {"MINE": "1"})
    assert environment["PYTHONPATH"] == f"{PROJECT}{os.pathsep}/other"
    assert environment["MINE"] == "1"


@pytest.mark.parametrize("master", MASTERS)
def test_no_driver_searches_for_plugins_of_pydantic_unless_it_is_told_to(master: str) -> None:
    name = "PYDANTIC_DISABLE_PLUGINS"
    assert driver_environment({}, master, {})[name] == "__all__"
    assert driver_environment({name: "logfire"}, master, {})[name] == "logfire"


def test_a_submit_finds_spark_and_python_without_an_activated_environment() -> None:
    environment = driver_environment({"PATH": "/usr/bin"}, "local[2]", {})
    assert (Path(environment["SPARK_HOME"]) / "bin" / "spark-submit").is_file()
    assert environment["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_a_submit_is_not_led_to_a_connect_server_and_keeps_a_spark_of_its_own() -> None:
    base = {
        "SPARK_REMOTE": "sc://elsewhere",
        TOKEN: "t",
        "SPARK_HOME": "/opt/spark",
        "PYSPARK_PYTHON": "/usr/bin/python3",
    }
    environment = driver_environment(base, "yarn", {})
    assert environment["SPARK_HOME"] == "/opt/spark"
    assert environment["PYSPARK_PYTHON"] == "/usr/bin/python3"
    assert not {"SPARK_REMOTE", TOKEN, "SPARK_LOCAL_IP"} & set(environment)


def test_a_submit_of_this_pythons_own_spark_uses_no_other_one() -> None:
    environment = driver_environment(
        {"SPARK_HOME": "/opt/spark", "SPARK_REMOTE": "sc://other"}, "local[1]", own_spark()
    )
    assert environment["SPARK_HOME"] == str(spark_home())
    assert "SPARK_REMOTE" not in environment


def test_a_connect_client_is_told_the_server_and_may_bring_its_token_from_the_environment() -> None:
    environment = driver_environment({TOKEN: "from-env"}, "sc://localhost:15002", {})
    assert (environment["SPARK_REMOTE"], environment[TOKEN]) == ("sc://localhost:15002", "from-env")
    assert driver_environment({TOKEN: "old"}, "sc://localhost:15002", {TOKEN: "new"})[TOKEN] == "new"

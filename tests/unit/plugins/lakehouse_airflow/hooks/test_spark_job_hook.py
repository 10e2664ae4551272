"""A connection alone says how a job is started, and how a bucket is reached."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.sdk.exceptions import AirflowFailException

from embedded.clone import CLONE
from lakehouse_airflow.hooks.driver_log import DriverLog
from lakehouse_airflow.hooks.spark_job import SparkJobHook
from lakehouse_airflow.hooks.store_access import prepare_process, reach_store
from millrace.errors import SparkUnavailableError
from millrace.settings import Settings
from millrace.spark_conf import LATE_COMPILER, STARTED_BY, launch_conf

APPLICATION = "/project/spark_jobs/millrace_spark/jobs/silver_merge.py"
ARGUMENTS = ["--table", "silver.flights"]
MakeHook = Callable[..., SparkJobHook]


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in ("delta-spark.jar", "millrace-log-store.jar"):
        (folder / name).touch()
    return folder


@pytest.fixture
def hook(tmp_path: Path, jars: Path, monkeypatch: pytest.MonkeyPatch) -> MakeHook:
    def make(connection: dict[str, Any], **arguments: Any) -> SparkJobHook:
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", **connection}))
        arguments = {"application_args": ARGUMENTS, "name": "millrace silver.flights", **arguments}
        log = DriverLog(tmp_path / "1.log")
        return SparkJobHook(conn_id="spark_default", driver_log=log, jars_folder=jars, **arguments)

    return make


def conf_arguments(jars: Path, master: str) -> list[str]:
    return [part for key, value in launch_conf(jars, master).items() for part in ("--conf", f"{key}={value}")]


@pytest.mark.parametrize("large_load", [True, False])
def test_only_a_large_load_gets_the_second_compiler(hook: MakeHook, large_load: bool) -> None:
    command = hook({"host": "local[2]"}, large_load=large_load)._build_spark_submit_command(APPLICATION)
    assert any(LATE_COMPILER in argument for argument in command) is large_load
    command = hook({"host": "local[2]"}, conf={"spark.log.level": "INFO"})._build_spark_submit_command(APPLICATION)
    assert [part for part in command if part.startswith("spark.log.level")] == ["spark.log.level=INFO"]


@pytest.mark.parametrize(
    ("connection", "master", "extra"),
    [
        ({"host": "local[2]"}, "local[2]", []),
        ({"host": "spark://h", "port": 7077}, "spark://h:7077", []),
        (
            {"host": "yarn", "extra": json.dumps({"queue": "etl", "deploy-mode": "client"})},
            "yarn",
            ["--queue", "etl", "--deploy-mode", "client"],
        ),
    ],
    ids=["local", "standalone", "yarn"],
)
def test_a_spark_master_is_submitted_to(
    hook: MakeHook, jars: Path, connection: dict[str, Any], master: str, extra: list[str]
) -> None:
    command = hook(connection)._build_spark_submit_command(APPLICATION)
    named = ["--master", master, "--name", "millrace silver.flights"]
    assert command == ["spark-submit", *conf_arguments(jars, master), *named, *extra, APPLICATION, *ARGUMENTS]


def test_kubernetes_gets_its_namespace(hook: MakeHook, jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its client is another package, which talks to a cluster; the command is made without it.
    client = ModuleType("airflow.providers.cncf.kubernetes.kube_client")
    monkeypatch.setitem(sys.modules, client.__name__, client)
    monkeypatch.setattr(spark_submit, "kube_client", client, raising=False)
    extra = json.dumps({"namespace": "spark", "deploy-mode": "client"})
    connection = {"host": "k8s://https://cluster", "port": 443, "extra": extra}
    spark_hook = hook(connection, env_vars={"FEED": "night"})
    own_conf = [f"spark.kubernetes.{setting}" for setting in ("driverEnv.FEED=night", "namespace=spark")]
    command = spark_hook._build_spark_submit_command(APPLICATION)
    head = ["spark-submit", *conf_arguments(jars, "k8s://https://cluster:443"), "--conf", own_conf[0]]
    master = ["--master", "k8s://https://cluster:443", "--conf", own_conf[1], "--name", "millrace silver.flights"]
    assert command == [*head, *master, "--deploy-mode", "client", APPLICATION, *ARGUMENTS]


def test_a_connect_server_gets_a_plain_python_client(hook: MakeHook) -> None:
    spark_hook = hook({"host": "sc://localhost", "port": 15002, "password": "the-secret-token"})
    assert spark_hook._build_spark_submit_command(APPLICATION) == [sys.executable, APPLICATION, *ARGUMENTS]
    assert spark_hook.master == "sc://localhost:15002"
    assert spark_hook.own_variables()["SPARK_CONNECT_AUTHENTICATE_TOKEN"] == "the-secret-token"
    for each in (spark_hook, hook({"host": "local[2]"})):
        assert each.own_variables()[STARTED_BY] == str(os.getpid()), "a driver knows who started it"


def test_a_missing_connection_says_how_to_create_it(tmp_path: Path, jars: Path) -> None:
    with pytest.raises(AirflowFailException, match=r"no connection 'nowhere'.*airflow connections add nowhere"):
        SparkJobHook(
            conn_id="nowhere", name="", application_args=[], driver_log=DriverLog(tmp_path / "1.log"), jars_folder=jars
        )


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({"host": "m1"}, r"names the Spark master .*m1.*does not know: give it the host"),
        ({"host": "http://m1", "port": 8080}, r"names the Spark master .*m1.*does not know: give it the host"),
        ({"host": "k8s://https://cluster", "port": 443}, "add apache-airflow-providers-cncf-kubernetes"),
    ],
)
def test_a_master_that_spark_does_not_know_or_whose_package_is_missing_is_named(
    hook: MakeHook, connection: dict[str, Any], said: str
) -> None:
    with pytest.raises(AirflowFailException, match=said):
        hook(connection)


def test_missing_jars_are_named_with_the_way_out(hook: MakeHook, jars: Path) -> None:
    spark_hook = hook({"host": "local[2]"})
    for jar in jars.iterdir():
        jar.unlink()
    with pytest.raises(AirflowFailException, match="lakehouse jars"):
        spark_hook._build_spark_submit_command(APPLICATION)


def test_a_server_that_does_not_answer_is_noticed_at_once(hook: MakeHook) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        spark_hook = hook({"host": "sc://127.0.0.1", "port": reserved.getsockname()[1]})
        with pytest.raises(SparkUnavailableError, match=r"(?s)No Spark Connect server answers at 127.0.0.1:.*make up"):
            spark_hook.submit(APPLICATION)


LAKE = Settings(s3_connection="lake_store")
KEYS = {"login": "AKIA1", "password": "hush"}
FOREIGN = {"AWS_PROFILE": "mine", "AWS_SESSION_TOKEN": "old", "PATH": "/bin"}


def connect(monkeypatch: pytest.MonkeyPatch, **said: Any) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_STORE", json.dumps({"conn_type": "aws", **said}))


def test_keys_address_and_region_become_the_variables_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"endpoint_url": "https://minio.example:9000", "region_name": "eu-1", "aws_session_token": "t"}
    connect(monkeypatch, **KEYS, extra=extra)
    environment: dict[str, str] = {}
    reach_store(environment, LAKE)
    assert environment == {
        "AWS_ACCESS_KEY_ID": "AKIA1",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_SESSION_TOKEN": "t",
        "AWS_ENDPOINT_URL_S3": "https://minio.example:9000",
        "AWS_DEFAULT_REGION": "eu-1",
    }


def test_somebody_elses_profile_and_token_do_not_go_with_the_connections_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, **KEYS)
    environment = dict(FOREIGN)
    reach_store(environment, LAKE)
    assert environment == {"AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "hush", "PATH": "/bin"}


def test_a_connection_that_names_the_address_alone_leaves_the_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, extra={"endpoint_url": "http://store"})
    environment = dict(FOREIGN)
    reach_store(environment, Settings())
    assert environment == FOREIGN, "without a connection it stays as it is"
    reach_store(environment, LAKE)
    assert environment == {**FOREIGN, "AWS_ENDPOINT_URL_S3": "http://store"}


def test_a_task_can_reach_the_store_from_its_settings_on(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, **KEYS)
    monkeypatch.setenv("LAKEHOUSE_S3_CONNECTION", "lake_store")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "another")
    assert prepare_process() == Settings()
    assert (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]) == ("AKIA1", "hush")


def test_a_connection_that_is_missing_is_named_with_what_it_needs() -> None:
    with pytest.raises(AirflowFailException, match=r"no connection 'nowhere'.*\nCreate it under Admin.* as login"):
        reach_store({}, Settings(s3_connection="nowhere"))


def test_what_nobody_knows_in_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, **KEYS, extra={"role_arn": "arn:aws:iam::1:role/x"})
    with pytest.raises(AirflowFailException, match="role_arn in its extra, which Millrace does not know"):
        reach_store({}, LAKE)


def test_every_operator_takes_its_settings_from_here() -> None:
    sources = {file.name: file.read_text() for file in (CLONE / "plugins/lakehouse_airflow/operators").glob("*.py")}
    assert sum("prepare_process()" in source for source in sources.values()) >= 5
    assert [name for name, source in sources.items() if " Settings()" in source] == []

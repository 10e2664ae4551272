"""The start of a new installation: its secrets, its cluster, and what a person reads if Docker Compose fails."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import pytest
from airflow.secrets.local_filesystem import load_connections_dict
from cryptography.fernet import Fernet
from sqlalchemy.engine import make_url

from containers.compose import Compose, ComposeError
from containers.first_start import AIRFLOW, COMMAND_LINE, FOLDERS, TASKS, make_secrets
from containers.spark_connect import HOST, MASTER, REMOTE, command
from include.contracts.airflow_access import AirflowAccess
from include.spark_conf import LOG_STORES

MACHINES = (TASKS, COMMAND_LINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for volume in FOLDERS:
        (tmp_path / volume).mkdir()
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    return {file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_a_later_start_changes_no_secret_and_gives_a_new_user_a_password(folder: Path) -> None:
    make_secrets(folder, ["admin", *MACHINES])
    before = contents(folder)
    assert len(before) > 12
    assert {name.partition("/")[0] for name in before} == set(FOLDERS)
    make_secrets(folder, ["admin", "ann", *MACHINES])
    after = contents(folder)
    first, both = json.loads(before.pop("users/passwords.json")), json.loads(after.pop("users/passwords.json"))
    assert after == before
    assert both.keys() == {"admin", "ann", *MACHINES}
    assert {name: both[name] for name in first} == first
    assert both["admin"] != both["ann"]


def test_two_installations_share_no_secret(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    for volume in FOLDERS:
        (other / volume).mkdir()
    make_secrets(folder, ["admin", *MACHINES])
    make_secrets(other, ["admin", *MACHINES])
    assert set(contents(folder).values()) & set(contents(other).values()) == set()


def test_only_the_password_that_postgresql_reads_is_readable_for_another_user(folder: Path) -> None:
    make_secrets(folder, ["admin", *MACHINES])
    modes = {
        file.relative_to(folder).as_posix(): file.stat().st_mode & 0o777 for file in folder.rglob("*") if file.is_file()
    }
    assert modes.pop("database/password") == 0o444
    assert set(modes.values()) == {0o600}


def test_each_reader_finds_its_secret_in_the_form_that_it_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_secrets(folder, ["admin", *MACHINES])
    found = contents(folder)
    assert make_url(found["airflow/database_url"]).password == found["database/password"]
    Fernet(found["airflow/fernet_key"])
    connections = load_connections_dict(str(folder / "airflow" / "connections.json"))
    spark, airflow = connections["spark_default"], connections["airflow_api"]
    assert (spark.host, spark.password) == (REMOTE, found["connect/token"])
    assert (airflow.host, airflow.login) == (AIRFLOW, TASKS)
    passwords = json.loads(found["users/passwords.json"])
    assert airflow.password == passwords[TASKS]
    command_line = AirflowAccess.model_validate_json(found["lakehouse/airflow.json"])
    assert (command_line.url, command_line.login) == (AIRFLOW, COMMAND_LINE)
    assert command_line.password.get_secret_value() == passwords[COMMAND_LINE]
    assert found["cluster/spark-defaults.conf"].startswith("spark.authenticate true\nspark.authenticate.secret ")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "store" / "credentials"))
    keys = boto3.Session().get_credentials()
    assert (keys.access_key, keys.secret_key) == (found["store/access_key"], found["store/secret_key"])


def test_without_docker_the_error_names_the_cause_and_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'docker.sock'}")
    with pytest.raises(ComposeError) as raised:
        Compose("millrace-tests", 8080).start()
    first, *_, last = str(raised.value).split("\n")
    assert first.startswith("docker compose up failed: ")
    assert str(tmp_path / "docker.sock") in first
    assert last.startswith("Start Docker")


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

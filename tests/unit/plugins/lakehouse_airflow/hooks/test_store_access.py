"""What an Airflow connection says of the bucket goes into the environment, and only there."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from include.settings import PROJECT, Settings
from lakehouse_airflow.hooks.store_access import prepare_process, reach_store

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
    sources = {file.name: file.read_text() for file in (PROJECT / "plugins/lakehouse_airflow/operators").glob("*.py")}
    assert sum("prepare_process()" in source for source in sources.values()) >= 5
    assert [name for name, source in sources.items() if " Settings()" in source] == []

"""Runs through Airflow into a bucket that only an Airflow connection leads to; drivers are killed there as well."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from embedded.airflow.api import AirflowApi
from embedded.home import Home
from embedded.servers.s3 import CREDENTIALS, Bucket, s3_bucket
from embedded.stack import Stack
from embedded.stack_processes import of_stack
from millrace.contracts.lake_path import lake_path
from millrace.settings import Settings
from tests.e2e.waiting import drivers, wait_for
from tests.support.airflow.trial_runs import begin_next_day, require_next_try, trial_stack

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

DOMAIN, CONNECTION = "judged", "lake_store"
SECRET = f"secret-{uuid4().hex}"


@pytest.fixture(scope="module")
def store() -> Iterator[Bucket]:
    with s3_bucket("lake") as bucket:
        yield bucket


@pytest.fixture(scope="module")
def lakehouse(store: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("lakehouse")
    return Settings(
        root=lake_path(f"s3://{store.name}/tables"),
        runs=folder / "runs",
        landing=str(folder / "landing"),
        tables=folder / "tables",
        s3_connection=CONNECTION,
    )


@pytest.fixture(scope="module")
def nobody_knows_the_store() -> Iterator[pytest.MonkeyPatch]:
    """The environment in which the stack starts says nothing of any store."""
    with pytest.MonkeyPatch.context() as environment:
        for name in os.environ:
            if name.startswith("AWS_"):
                environment.delenv(name)
        # Or boto3 would ask the machine it runs on.
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield environment


@pytest.fixture(scope="module")
def stack(
    lakehouse: Settings,
    store: Bucket,
    nobody_knows_the_store: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    submit = '{"conn_type": "spark", "host": "local[2]"}'
    with trial_stack(lakehouse, tmp_path_factory.mktemp("airflow"), connection=submit) as running:
        for name, value in store.environment.items():  # the tests themselves read the tables from here on
            nobody_knows_the_store.setenv(name, value)
        yield running


@pytest.fixture(scope="module")
def api(stack: Stack, store: Bucket) -> Iterator[AirflowApi]:
    reached = f'{{"endpoint_url": "{store.endpoint}", "region_name": "{CREDENTIALS["AWS_DEFAULT_REGION"]}"}}'
    connection = {"connection_id": CONNECTION, "conn_type": "aws", "login": "testing", "password": SECRET}
    with stack.api() as client:
        client.wait_for_dag(DOMAIN)
        client.set_paused(DOMAIN, False)
        client.ask("POST", "/api/v2/connections", json={**connection, "extra": reached})
        yield client


def test_a_day_ends_in_the_bucket_that_the_connection_names_though_a_driver_is_killed(
    api: AirflowApi, stack: Stack, lakehouse: Settings
) -> None:
    table = f"silver.{DOMAIN}_readings"
    run, driver = begin_next_day(api, stack, lakehouse, table)
    assert SECRET.encode() not in b"".join(_command_lines(stack.home))

    driver.kill()

    wait_for(lambda: not drivers(stack.home, table), patience_s=20)
    require_next_try(api, lakehouse, run, table)


def test_nobody_hears_the_secret(api: AirflowApi, stack: Stack, lakehouse: Settings, store: Bucket) -> None:
    kept = [stack.home.airflow, lakehouse.runs or Path()]
    files = [file for folder in kept for file in folder.rglob("*") if file.is_file()]
    assert any(file.suffix == ".log" and b"judged" in file.read_bytes() for file in files)
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []
    objects = [found["Key"] for found in store.client.list_objects_v2(Bucket=store.name)["Contents"]]
    assert len(objects) > 10
    bodies = (store.client.get_object(Bucket=store.name, Key=key)["Body"].read() for key in objects)
    assert not any(SECRET.encode() in body for body in bodies)


def _command_lines(home: Home) -> list[bytes]:
    lines = [Path(f"/proc/{process.pid}/cmdline").read_bytes() for process in of_stack(home)]
    assert any(b"spark_jobs" in line for line in lines)
    return lines

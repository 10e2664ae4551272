"""The factory's DAG in Airflow's task runner: events, refusals, retries, and no child outlives its task."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from include.settings import PROJECT
from tests.support.airflow.airflow_home import create_airflow_home
from tests.support.airflow.shop_runs import COMMITS, DAY, HANGS, LOSES_ONCE, REFUSED, Airflow, Case
from tests.support.documents.specs import Document, bronze_document, write_specs

FILES = {"bronze.orders.files": ["success", 1]}

START_OF_A_SCHEDULER = """
import json
from airflow.jobs.job import Job
from airflow.models.pool import Pool

def slots():
    pool = Pool.get_pool("spark")
    return pool.slots if pool else None

missing = slots()
Job()
created = slots()
Pool.create_or_update_pool("spark", 7, "more", include_deferred=False)
Job()
print(json.dumps([missing, created, slots()]))
"""


def _orders() -> Document:
    """The spec of the table, which looks for late files every second."""
    document = bronze_document()
    return {**document, "source": {**document["source"], "wait": {"poke_interval": "1 seconds"}}}


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "dags").mkdir()
    landing = folder / "landing" / "orders" / "date=2013-01-05"
    landing.mkdir(parents=True)
    (landing / "a.json").write_text('{"order_id": "1"}\n')
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = {"conn_type": "spark", "host": "sc://127.0.0.1", "port": server.getsockname()[1]}
        environment = {
            **create_airflow_home(folder / "airflow", folder / "dags"),
            "PYTHONPATH": str(PROJECT),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
            "LAKEHOUSE_LANDING": str(folder / "landing"),
            "LAKEHOUSE_TABLES": str(write_specs(folder / "tables", _orders())),
        }
        yield Airflow(folder, environment)


@pytest.fixture(scope="module")
def runs(airflow: Airflow) -> dict[str, Any]:
    """Run all cases that end by themselves in one process: importing Airflow is most of their cost."""
    nothing_new = "raise SystemExit('nothing is new, and yet a driver was started')"
    cases = {
        "first": Case("one", COMMITS, DAY, "2013-02-01T00:00:00+00:00"),
        "cleared": Case("one", nothing_new, DAY, "2013-02-01T00:00:00+00:00"),
        "second": Case("one", nothing_new, DAY, "2013-02-02T00:00:00+00:00"),
        "refused": Case("two", REFUSED, DAY, "2013-02-03T00:00:00+00:00"),
        "conflict": Case("three", LOSES_ONCE, DAY, "2013-02-04T00:00:00+00:00"),
        "no day": Case("four", COMMITS, {}, "2013-02-05T00:00:00+00:00"),
        "mapped": Case("seven", LOSES_ONCE, DAY, "2013-02-06T00:00:00+00:00", dag="mapped"),
        "late": Case("eight", LOSES_ONCE, {"day": "2013-01-07"}, "2013-02-07T00:00:00+00:00", dag="late"),
    }
    return airflow.results(airflow.start(cases))


def test_an_event_has_interval_version_and_rows(runs: dict[str, Any]) -> None:
    assert runs["first"]["tasks"] == {**FILES, "bronze.orders": ["success", 1], "bronze.orders_gate": ["success", 1]}
    expected = {
        "summary": "bronze.orders version 1 for 2013-01-05: certified",
        "interval_start": "2013-01-05T00:00:00+00:00",
        "interval_end": "2013-01-06T00:00:00+00:00",
        "version": 1,
        "rows": {},
        "batch_seq": 1,
    }
    [[name, extra]] = runs["first"]["events"]
    assert (name, {key: extra[key] for key in expected}) == ("bronze.orders", expected)


def test_the_asset_of_a_table_is_in_the_ui_with_and_without_events(runs: dict[str, Any]) -> None:
    for run in (run for name, run in runs.items() if name not in ("mapped", "late")):
        assert run["assets"] == [["bronze.orders", "millrace://bronze/orders", "bronze"]]


def test_a_run_with_nothing_new_starts_no_driver_and_announces_nothing(runs: dict[str, Any]) -> None:
    assert runs["second"]["tasks"] == {**FILES, "bronze.orders": ["success", 1], "bronze.orders_gate": ["success", 1]}
    assert runs["second"]["results"]["bronze.orders"]["outcome"] == "no_op"
    assert runs["second"]["events"] == []


def test_a_cleared_run_does_not_emit_its_event_again(runs: dict[str, Any]) -> None:
    assert runs["cleared"]["results"]["bronze.orders"]["version"] == 1
    assert runs["cleared"]["events"] == runs["first"]["events"]


def test_a_refused_version_fails_the_gate_once_and_is_not_announced(runs: dict[str, Any]) -> None:
    assert runs["refused"]["tasks"] == {**FILES, "bronze.orders": ["success", 1], "bronze.orders_gate": ["failed", 1]}
    assert runs["refused"]["events"] == []
    line = "2013-01-05: bronze.orders version 1 refused: expect_table_row_count_to_be_between() observed 0"
    assert line in runs["refused"]["log"]


def test_the_log_of_each_task_names_table_and_day(runs: dict[str, Any]) -> None:
    for line in ("bronze.orders for 2013-01-05 (UTC)", "2013-01-05: bronze.orders version 1 passed"):
        assert line in runs["first"]["log"]


def test_a_conflict_is_retried_by_the_retry_policy(runs: dict[str, Any]) -> None:
    assert runs["conflict"]["tasks"] == {**FILES, "bronze.orders": ["success", 2], "bronze.orders_gate": ["success", 1]}
    assert "lost to others" in runs["conflict"]["log"]


def test_in_a_hand_written_dag_mapped_tasks_retry_and_their_gates_find_what_they_wrote(runs: dict[str, Any]) -> None:
    run = runs["mapped"]
    assert run["tasks"] == {"load.write": ["success", 2], "load.gate": ["success", 1], "again": ["success", 1]}
    assert "lost to others" in run["log"]
    assert "2013-01-05: bronze.orders version 1 passed; readers use version 1" in run["log"]
    [[name, extra]] = run["events"]
    assert (name, extra["version"], extra["interval_start"]) == ("bronze.orders", 1, "2013-01-05T00:00:00+00:00")


def test_a_mapped_task_of_a_group_waits_for_late_files_and_then_retries_a_conflict(runs: dict[str, Any]) -> None:
    run = runs["late"]
    assert "no landing folder" in run["log"]
    assert "Waits for the files in the triggerer until" in run["log"]
    assert {task: state for task, (state, _) in run["tasks"].items()} == dict.fromkeys(
        ("source", "load.write", "load.gate", "files"), "success"
    )
    assert run["tasks"]["load.write"][1] == 2, "the wait is no try, and the conflict is one"
    assert "lost to others" in run["log"]


def test_a_manual_run_without_a_day_fails_once_and_says_what_to_type(runs: dict[str, Any]) -> None:
    assert runs["no day"]["tasks"] == {
        "bronze.orders.files": ["failed", 1],
        "bronze.orders": ["upstream_failed", 0],
        "bronze.orders_gate": ["upstream_failed", 0],
    }
    assert "Which day is this run for?" in runs["no day"]["log"]


def test_the_pool_of_the_tasks_is_created_when_airflow_starts_and_is_never_changed(airflow: Airflow) -> None:
    command = [sys.executable, "-c", START_OF_A_SCHEDULER]
    done = subprocess.run(command, env=airflow.environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    missing, created, changed = json.loads(done.stdout.splitlines()[-1])
    assert (missing, created, changed) == (None, os.cpu_count(), 7)


@pytest.mark.slow
def test_execution_timeout_leaves_no_child(airflow: Airflow) -> None:
    started = airflow.start({"timeout": Case("five", HANGS, DAY)}, timeout=15, retries=0)
    airflow.wait_until_hanging("timeout", started)
    run = airflow.results(started)["timeout"]
    assert run["tasks"]["bronze.orders"] == ["failed", 1]
    assert "AirflowTaskTimeout" in run["log"]
    assert airflow.children("timeout") == []


def test_a_task_that_is_killed_leaves_no_child_and_says_so(airflow: Airflow) -> None:
    started = airflow.start({"killed": Case("six", HANGS, DAY)}, retries=0)
    airflow.wait_until_hanging("killed", started)
    # What the supervisor sends to a task that was marked failed or cleared in the UI.
    os.kill(started.pid, signal.SIGTERM)
    run = airflow.results(started)["killed"]
    assert run["tasks"]["bronze.orders"] == ["failed", 1]
    assert "the driver of bronze_ingest was stopped" in run["log"]
    assert airflow.children("killed") == []

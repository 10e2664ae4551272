"""Whatever is killed of a running task, nothing of it is left, and the run ends right by Airflow's own next try."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from embedded.airflow.api import AirflowApi
from embedded.airflow.standalone import PARTS, missing_parts
from embedded.spark.server import NAME as SPARK
from embedded.stack import Stack
from embedded.stack_processes import of_stack, recorded
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.waiting import drivers, wait_for
from tests.support.airflow.trial_runs import (
    PATIENCE_S,
    assert_batches_once,
    begin_next_day,
    require_next_try,
    trial_stack,
)

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

WARM, SUBMITTED = "silver.judged_readings", "bronze.submitted_readings"
"""Tables that are written on the warm Spark server, and by spark-submit."""

CASES = {
    "the driver on the warm server": (WARM, 0),
    "the task of a driver on the warm server": (WARM, 1),
    "the Python of a submitted driver": (SUBMITTED, 0),
    "the JVM of a submitted driver": (SUBMITTED, 1),
    "the task of a submitted driver": (SUBMITTED, 2),
}
"""Victim -> the table, and how many generations above the driver's Python it is."""

MINUTE_S = 60


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("lakehouse")
    return Settings(root=folder / "lakehouse", landing=str(folder / "landing"), tables=folder / "tables")


@pytest.fixture(scope="module")
def stack(lakehouse: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with trial_stack(lakehouse, tmp_path_factory.mktemp("airflow")) as running:
        yield running


@pytest.fixture(scope="module")
def api(stack: Stack) -> Iterator[AirflowApi]:
    with stack.api() as client:
        for domain in ("judged", "submitted"):
            client.wait_for_dag(domain)
            client.set_paused(domain, False)
        master = {"connection_id": trials.SUBMIT_CONNECTION, "conn_type": "spark", "host": "local[2]"}
        client.ask("POST", "/api/v2/connections", json=master)
        yield client


@pytest.mark.parametrize(("table", "generations"), CASES.values(), ids=CASES.keys())
def test_a_task_of_which_a_process_is_killed_ends_right_by_its_next_try(
    api: AirflowApi, stack: Stack, lakehouse: Settings, table: str, generations: int
) -> None:
    run, driver = begin_next_day(api, stack, lakehouse, table)
    family = [driver, *driver.parents()]

    family[generations].kill()

    wait_for(lambda: not drivers(stack.home, table), patience_s=20)
    require_next_try(api, lakehouse, run, table)


def test_a_run_whose_whole_airflow_is_killed_ends_right_after_its_next_start(
    api: AirflowApi, stack: Stack, lakehouse: Settings
) -> None:
    run, _ = begin_next_day(api, stack, lakehouse, WARM)

    server = recorded(stack.home, SPARK)
    for process in of_stack(stack.home):
        if process != server and process not in drivers(stack.home, WARM):
            process.kill()
    wait_for(lambda: not drivers(stack.home, WARM), patience_s=20)
    for name in PARTS:
        (stack.home.pids / name).unlink()
    began = datetime.now(UTC)
    stack.airflow.start(stack.environment())
    api.wait_until_healthy(began, alive=lambda: not missing_parts(stack.home))

    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert_batches_once(lakehouse, "judged")


def test_a_task_that_somebody_clears_while_it_runs_runs_again_alone(
    api: AirflowApi, stack: Stack, lakehouse: Settings
) -> None:
    run, driver = begin_next_day(api, stack, lakehouse, WARM)
    api.clear(run, WARM)

    wait_for(lambda: not driver.is_running(), MINUTE_S)
    require_next_try(api, lakehouse, run, WARM)


def test_a_submitted_task_that_somebody_marks_failed_stops_and_ends_right_once_it_is_cleared(
    api: AirflowApi, stack: Stack, lakehouse: Settings
) -> None:
    run, _ = begin_next_day(api, stack, lakehouse, SUBMITTED)
    api.mark_failed(api.task(run, SUBMITTED))

    wait_for(lambda: not drivers(stack.home, SUBMITTED), MINUTE_S)
    assert api.wait_for_run(run, PATIENCE_S).state == "failed"
    api.clear(run, SUBMITTED)
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert_batches_once(lakehouse, "submitted")

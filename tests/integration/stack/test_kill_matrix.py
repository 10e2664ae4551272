"""Whatever is killed of a running task, nothing of it is left, and the run ends right by Airflow's own next try."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import psutil
import pytest

from embedded.address import Address
from embedded.airflow.api import AirflowApi, Run
from embedded.airflow.standalone import NAME as AIRFLOW
from embedded.home import Home
from embedded.spark.server import NAME as SPARK
from embedded.stack import Stack, remaining_processes
from embedded.stack_processes import of_stack, recorded
from include.settings import PROJECT, Settings
from tests.e2e import trials
from tests.e2e.killing import count_intents
from tests.e2e.waiting import drivers, wait_for
from tests.support.airflow.trial_runs import assert_batches_once, deliver_next_day, driver_in_mid_write

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

WARM, SUBMITTED = "judged", "submitted"
"""Domains whose jobs run on the warm Spark server, and by spark-submit."""

CASES = {
    "the driver on the warm server": (WARM, 0),
    "the task of a driver on the warm server": (WARM, 1),
    "the Python of a submitted driver": (SUBMITTED, 0),
    "the JVM of a submitted driver": (SUBMITTED, 1),
    "the task of a submitted driver": (SUBMITTED, 2),
}
"""Victim -> the domain, and how many generations above the driver's Python it is."""

PATIENCE_S, MINUTE_S = 900, 60


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("lakehouse")
    settings = Settings(root=folder / "lakehouse", landing=str(folder / "landing"), tables=folder / "tables")
    trials.add_specs(settings.tables)
    return settings


@pytest.fixture(scope="module")
def stack(
    new_home: Callable[[], Home], lakehouse: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    home, dags = new_home(), tmp_path_factory.mktemp("airflow") / "dags"
    shutil.copytree(PROJECT / "dags", dags, ignore=shutil.ignore_patterns("flights.py"))
    trials.add_dags(dags)
    with Stack(home, lakehouse, Address.free(home, lakehouse), dags) as running:
        yield running
    assert remaining_processes(home) == []


@pytest.fixture(scope="module")
def api(stack: Stack) -> Iterator[AirflowApi]:
    with stack.api() as client:
        for domain in (WARM, SUBMITTED):
            client.wait_for_dag(domain)
            client.set_paused(domain, False)
        master = {"connection_id": trials.SUBMIT_CONNECTION, "conn_type": "spark", "host": "local[2]"}
        client.ask("POST", "/api/v2/connections", json=master)
        yield client


def half_way_through(
    api: AirflowApi, stack: Stack, lakehouse: Settings, domain: str
) -> tuple[Run, str, psutil.Process]:
    """A run of the domain's next day that writes its silver table just now; that table, and its driver's Python."""
    table = f"silver.{domain}_readings"
    day, intents = deliver_next_day(lakehouse, domain), count_intents(lakehouse, table)
    run = api.trigger(domain, {"day": str(day)})
    return run, table, driver_in_mid_write(stack, lakehouse, table, intents)


@pytest.mark.parametrize(("domain", "generations"), CASES.values(), ids=CASES.keys())
def test_a_task_of_which_a_process_is_killed_ends_right_by_its_next_try(
    api: AirflowApi, stack: Stack, lakehouse: Settings, domain: str, generations: int
) -> None:
    run, table, driver = half_way_through(api, stack, lakehouse, domain)
    family = [driver, *driver.parents()]

    family[generations].kill()

    wait_for(lambda: not drivers(stack.home, table), patience_s=20)
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert api.task(run, table).try_number == 2
    assert_batches_once(lakehouse, domain)


def test_a_run_whose_whole_airflow_is_killed_ends_right_after_its_next_start(
    api: AirflowApi, stack: Stack, lakehouse: Settings
) -> None:
    run, table, _ = half_way_through(api, stack, lakehouse, WARM)

    server = recorded(stack.home, SPARK)
    for process in of_stack(stack.home):
        if process != server and process not in drivers(stack.home, table):
            process.kill()
    wait_for(lambda: not drivers(stack.home, table), patience_s=20)
    (stack.home.pids / AIRFLOW).unlink()
    began = datetime.now(UTC)
    stack.airflow.start(stack.environment())
    api.wait_until_healthy(began, alive=lambda: recorded(stack.home, AIRFLOW) is not None)

    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert_batches_once(lakehouse, WARM)


@pytest.mark.parametrize("domain", [WARM, SUBMITTED])
def test_a_task_that_somebody_clears_while_it_runs_runs_again_alone(
    api: AirflowApi, stack: Stack, lakehouse: Settings, domain: str
) -> None:
    run, table, driver = half_way_through(api, stack, lakehouse, domain)
    api.clear(run, table)

    wait_for(lambda: not driver.is_running(), MINUTE_S)
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert api.task(run, table).try_number == 2
    assert_batches_once(lakehouse, domain)


@pytest.mark.parametrize("domain", [WARM, SUBMITTED])
def test_a_task_that_somebody_marks_failed_while_it_runs_stops_and_ends_right_once_it_is_cleared(
    api: AirflowApi, stack: Stack, lakehouse: Settings, domain: str
) -> None:
    run, table, _ = half_way_through(api, stack, lakehouse, domain)
    api.mark_failed(api.task(run, table))

    wait_for(lambda: not drivers(stack.home, table), MINUTE_S)
    assert api.wait_for_run(run, PATIENCE_S).state == "failed"
    api.clear(run, table)
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert_batches_once(lakehouse, domain)

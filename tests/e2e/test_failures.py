"""Trouble in a real Airflow: a refused version, a task out of time, a dead Spark server."""

from __future__ import annotations

import pytest

from demo.reading import at_version, delta_reader
from embedded.airflow.api import AirflowApi, Run
from embedded.airflow.drain import drain
from embedded.airflow.standalone import POOL
from embedded.spark.server import NAME as SPARK
from embedded.stack import Stack
from embedded.stack_processes import recorded
from include.cli.facts import table_facts
from include.paths import LakehousePaths
from include.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, PATIENCE_S, SECOND, THIRD, RunDay
from tests.e2e.killing import KilledAndCleared
from tests.e2e.waiting import drivers, wait_for

pytestmark = pytest.mark.slow

SILVER = "silver.judged_readings"
SENSOR = "bronze.late_readings.files"


def certified_rows(settings: Settings, table: str, columns: str = "sensor, value") -> list[tuple[str, int]]:
    """The rows of the certified version, as a reader gets them."""
    version = table_facts(table, settings.root).certified_version
    assert version is not None
    with delta_reader() as reader:
        relation = at_version(LakehousePaths(settings.root).table(table), version)
        return reader.execute(f"SELECT {columns} FROM {relation} ORDER BY sensor").fetchall()


@pytest.mark.timeout(600)
def test_a_run_by_hand_whose_task_is_killed_half_way_and_cleared_ends_right(
    killed_run: KilledAndCleared, lakehouse: Settings
) -> None:
    assert (killed_run.killed.state, killed_run.ended.state) == ("running", "failed")
    assert (killed_run.cleared.state, killed_run.run.state) == ("success", "success")
    assert killed_run.cleared.try_number > killed_run.killed.try_number
    assert certified_rows(lakehouse, SILVER) == [("a", 1), ("b", 2)]
    assert certified_rows(lakehouse, "gold.judged_totals", "sensor, total") == [("a", 1), ("b", 2)]


@pytest.mark.timeout(600)
def test_a_refused_version_leaves_readers_on_the_certified_one(refused_run: Run, lakehouse: Settings) -> None:
    assert refused_run.state == "failed"
    facts = table_facts(SILVER, lakehouse.root)
    assert facts.rows == 5
    assert facts.version is not None
    assert facts.certified_version is not None
    assert facts.certified_version < facts.version
    assert certified_rows(lakehouse, SILVER) == [("a", 1), ("b", 2)]


@pytest.mark.timeout(600)
def test_a_refused_version_fails_the_gate_alone_and_is_not_tried_again(api: AirflowApi, refused_run: Run) -> None:
    states = {task.task_id: (task.state, task.try_number) for task in api.tasks("judged", refused_run.dag_run_id)}
    assert states == {
        "bronze.judged_readings.files": ("success", 1),
        "bronze.judged_readings": ("success", 1),
        "bronze.judged_readings_gate": ("success", 1),
        "silver.judged_readings": ("success", 1),
        "silver.judged_readings_gate": ("failed", 1),
        "gold.judged_totals": ("upstream_failed", 0),
        "gold.judged_totals_gate": ("upstream_failed", 0),
    }


@pytest.mark.timeout(600)
def test_the_log_of_a_refusing_gate_begins_with_the_expectation_that_failed(api: AirflowApi, refused_run: Run) -> None:
    first, *_ = api.log(api.task(refused_run, "silver.judged_readings_gate"))
    assert first.startswith(f"{SECOND}: {SILVER} version ")
    assert trials.AT_MOST_THREE in first
    assert "there are three sensors" in first


@pytest.mark.timeout(600)
def test_a_task_out_of_time_leaves_no_process(
    api: AirflowApi, stack: Stack, start_day: RunDay, lakehouse: Settings
) -> None:
    trials.deliver(lakehouse.landing, "hasty", FIRST, [("a", 1)])
    run = start_day("hasty", FIRST)
    driver = wait_for(lambda: drivers(stack.home, "bronze.hasty_readings"))[0]
    driver.suspend()  # so that it is out of time, however quick this machine is

    wait_for(lambda: api.task(run, "bronze.hasty_readings").state in ("up_for_retry", "failed"))

    assert drivers(stack.home, "bronze.hasty_readings") == []
    assert not driver.is_running()
    api.end_run(run)


@pytest.mark.timeout(900)
def test_another_day_is_loaded_while_a_day_waits_for_its_files_without_a_worker(
    api: AirflowApi, start_day: RunDay, lakehouse: Settings
) -> None:
    trials.deliver(lakehouse.landing, "late", SECOND, [("a", 1), ("b", 2)])
    waiting = start_day("late", FIRST)
    # Airflow makes the run of yesterday as soon as the DAG is switched on; nobody delivers its files.
    scheduled = wait_for(lambda: api.runs("late", run_type="scheduled"))[0]
    wait_for(lambda: {api.task(run, SENSOR).state for run in (waiting, scheduled)} == {"deferred"})
    assert api.tasks("late", state="running") == []
    assert api.get(api.task(waiting, SENSOR).path)["pool"] == "default_pool"
    wait_for(lambda: "deadline" in trials.notes(lakehouse.landing))
    assert "run" not in trials.notes(lakehouse.landing)

    assert api.wait_for_run(start_day("late", SECOND), PATIENCE_S).state == "success"

    assert table_facts("bronze.late_readings", lakehouse.root).rows == 2
    assert {api.task(run, SENSOR).state for run in (waiting, scheduled)} == {"deferred"}
    wait_for(lambda: trials.notes(lakehouse.landing) == {"deadline", "task", "run"})
    trials.deliver(lakehouse.landing, "late", FIRST, [("c", 3)])
    assert api.wait_for_run(waiting, PATIENCE_S).state == "success"
    sensor = api.task(waiting, SENSOR)
    assert sensor.try_number == 1
    assert any("Waits for the files in the triggerer until" in line for line in api.log(sensor))
    assert table_facts("bronze.late_readings", lakehouse.root).rows == 3
    api.end_run(scheduled)


@pytest.mark.timeout(600)
def test_stopping_fails_what_still_runs_and_lets_nothing_new_start(
    api: AirflowApi, stack: Stack, start_day: RunDay, lakehouse: Settings
) -> None:
    trials.deliver(lakehouse.landing, "judged", THIRD, [("a", 1)])
    run = start_day("judged", THIRD)
    wait_for(lambda: drivers(stack.home, "bronze.judged_readings"))[0].suspend()
    try:
        failed = drain(api, patience_s=0)
        wait_for(lambda: not drivers(stack.home, "bronze.judged_readings"), patience_s=30)
    finally:
        api.set_pool(POOL, 2, "open again")

    assert [task.task_id for task in failed] == ["bronze.judged_readings"]
    assert api.wait_for_run(run, PATIENCE_S).state == "failed"
    states = {task.task_id: task.state for task in api.tasks("judged", run.dag_run_id)}
    assert states["bronze.judged_readings"] == "failed"
    assert states["silver.judged_readings"] == "upstream_failed"


@pytest.mark.timeout(600)
def test_a_dead_spark_server_is_started_again_and_the_run_ends_well(
    api: AirflowApi, stack: Stack, start_day: RunDay, lakehouse: Settings
) -> None:
    trials.deliver(lakehouse.landing, "revived", FIRST, [("a", 1), ("b", 2)])
    server = recorded(stack.home, SPARK)
    assert server is not None
    server.kill()

    run = api.wait_for_run(start_day("revived", FIRST), PATIENCE_S)

    assert run.state == "success"
    assert recorded(stack.home, SPARK) not in (None, server)
    assert table_facts("bronze.revived_readings", lakehouse.root).rows == 2


@pytest.mark.timeout(600)
def test_a_day_goes_through_spark_submit_where_the_connection_says_so(
    api: AirflowApi, start_day: RunDay, lakehouse: Settings
) -> None:
    trials.deliver(lakehouse.landing, "submitted", FIRST, [("a", 1), ("b", 2)])
    master = {"connection_id": trials.SUBMIT_CONNECTION, "conn_type": "spark", "host": "local[2]"}
    api.ask("POST", "/api/v2/connections", json=master)

    run = api.wait_for_run(start_day("submitted", FIRST), PATIENCE_S)

    assert run.state == "success"
    assert "spark-submit" in "\n".join(api.log(api.task(run, "bronze.submitted_readings")))
    assert certified_rows(lakehouse, "bronze.submitted_readings") == [("a", 1), ("b", 2)]

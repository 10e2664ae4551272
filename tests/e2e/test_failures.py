"""Tasks that are killed in a real Airflow: by a person, and by a stop."""

from __future__ import annotations

import pytest

from embedded.airflow.api import AirflowApi, Run
from embedded.airflow.standalone import POOL
from embedded.stack import Stack, drain
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.days import THIRD, StartDay
from tests.e2e.waiting import drivers, ended, wait_for
from tests.support.rights import open_to_others

pytestmark = pytest.mark.slow


def test_a_run_by_hand_whose_task_is_killed_half_way_and_cleared_ends_right(
    api: AirflowApi, killed_run: Run, lakehouse: Settings
) -> None:
    assert killed_run.state == "success"
    assert api.task(killed_run, "silver.judged_readings").try_number == 2
    assert trials.certified_rows(lakehouse, "silver.judged_readings") == [("a", 1), ("b", 2)]
    assert trials.certified_rows(lakehouse, "gold.judged_totals", "total") == [("a", 1), ("b", 2)]


def test_stopping_fails_what_still_runs_and_lets_nothing_new_start(
    api: AirflowApi, stack: Stack, start_day: StartDay, lakehouse: Settings
) -> None:
    trials.deliver(lakehouse.landing, "judged", THIRD, [("a", 1)])
    run = start_day("judged", THIRD)
    wait_for(lambda: drivers(stack.home, "bronze.judged_readings"))[0].suspend()
    try:
        shown = str(api.get(f"{api.task(run, 'bronze.judged_readings').path}/logs/1", full_content="true"))
        assert f"http://127.0.0.1:{stack.address.worker_logs}/log/" in shown, "the log of a running task is served"
        failed = drain(api, patience_s=0)
        wait_for(lambda: not drivers(stack.home, "bronze.judged_readings"), patience_s=30)
    finally:
        api.set_pool(POOL, 2, "open again")

    assert [task.task_id for task in failed] == ["bronze.judged_readings"]
    assert ended(api, run).state == "failed"
    states = {task.task_id: task.state for task in api.tasks("judged", run.dag_run_id)}
    assert states["bronze.judged_readings"] == "failed"
    assert states["silver.judged_readings"] == "upstream_failed"


def test_other_users_of_the_machine_can_read_nothing_that_tasks_have_written(
    refused_run: Run, lakehouse: Settings
) -> None:
    assert refused_run.state == "failed"
    assert lakehouse.paths.quarantine("bronze.judged_readings").is_dir()
    assert open_to_others(lakehouse.root) == []

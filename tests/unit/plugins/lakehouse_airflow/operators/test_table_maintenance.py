"""Maintenance needs no date, and removes nothing unless the run asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from include.contracts.job.args import Job, JobArgs
from lakehouse_airflow.operators.table_maintenance import TableMaintenanceOperator
from tests.support.ledger.small_lake import commit_batch
from tests.unit.plugins.lakehouse_airflow.operators.conftest import DAY, House

MakeRun = Callable[..., dict[str, Any]]
DONE = "report(Outcome.NO_OP, 'nothing to do')"


def task_of(job: Job) -> TableMaintenanceOperator:
    return TableMaintenanceOperator(task_id="orders", job=job, table="bronze.orders")


@pytest.mark.usefixtures("warm_server")
@pytest.mark.parametrize(
    ("job", "params", "dry_run"),
    [
        (Job.TABLE_VACUUM, {}, True),
        (Job.TABLE_VACUUM, {"vacuum_dry_run": True}, True),
        (Job.TABLE_VACUUM, {"vacuum_dry_run": False}, False),
        (Job.TABLE_OPTIMIZE, {"vacuum_dry_run": True}, False),
    ],
)
def test_vacuum_is_a_dry_run_by_default(
    house: House, run_of: MakeRun, job: Job, params: dict[str, bool], dry_run: bool
) -> None:
    house.deliver()
    commit_batch(house.root, house.landing, house.spec, DAY, "a run")
    house.job(DONE, job)
    task = task_of(job)
    task.execute({**run_of(run_type="manual", logical_date=None, start=None, end=None), "params": params})
    assert JobArgs.from_argv(task.application_args).dry_run is dry_run


@pytest.mark.usefixtures("warm_server")
@pytest.mark.parametrize("job", [Job.TABLE_OPTIMIZE, Job.TABLE_VACUUM])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_task_of_a_hand_written_dag_says_itself_whether_it_is_a_dry_run(
    house: House, run_of: MakeRun, job: Job, dry_run: bool
) -> None:
    house.deliver()
    commit_batch(house.root, house.landing, house.spec, DAY, "a run")
    house.job(DONE, job)
    task = TableMaintenanceOperator(task_id="orders", job=job, table="bronze.orders", is_dry_run=dry_run)
    task.execute(run_of())
    assert JobArgs.from_argv(task.application_args).dry_run is dry_run


def test_a_table_that_does_not_exist_yet_starts_no_spark(house: House, run_of: MakeRun) -> None:
    result = task_of(Job.TABLE_OPTIMIZE).execute(run_of())
    assert result["message"] == "bronze.orders does not exist yet"

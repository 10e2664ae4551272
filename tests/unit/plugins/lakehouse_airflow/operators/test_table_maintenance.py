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


def task_of(job: Job, **given: bool) -> TableMaintenanceOperator:
    return TableMaintenanceOperator(task_id="orders", job=job, table="bronze.orders", **given)


@pytest.mark.usefixtures("warm_server")
@pytest.mark.parametrize(
    ("job", "params", "given", "dry_run"),
    [
        (Job.TABLE_VACUUM, {}, {}, True),
        (Job.TABLE_VACUUM, {"vacuum_dry_run": False}, {}, False),
        (Job.TABLE_OPTIMIZE, {"vacuum_dry_run": True}, {}, False),
        (Job.TABLE_VACUUM, {}, {"is_dry_run": False}, False),
        (Job.TABLE_OPTIMIZE, {}, {"is_dry_run": True}, True),
    ],
)
def test_vacuum_is_a_dry_run_unless_the_form_or_a_hand_written_dag_says_otherwise(
    house: House, run_of: MakeRun, job: Job, params: dict[str, bool], given: dict[str, bool], dry_run: bool
) -> None:
    house.deliver()
    commit_batch(house.root, house.landing, house.spec, DAY, "a run")
    house.job(DONE, job)
    task = task_of(job, **given)
    task.execute({**run_of(run_type="manual", logical_date=None, start=None, end=None), "params": params})
    assert JobArgs.from_argv(task.application_args).dry_run is dry_run


def test_a_table_that_does_not_exist_yet_starts_no_spark(house: House, run_of: MakeRun) -> None:
    result = task_of(Job.TABLE_OPTIMIZE).execute(run_of())
    assert result["message"] == "bronze.orders does not exist yet"

"""Rebuilds and maintenance ask their jobs for what the form says, and change nothing unless a run asks for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from include.contracts.job.args import Job, JobArgs
from include.contracts.job.requests import RebuildRequest
from lakehouse_airflow.assets import REBUILT_TABLE, table_asset
from lakehouse_airflow.operators.table_maintenance import TableMaintenanceOperator
from lakehouse_airflow.operators.table_rebuild import TableRebuildOperator
from tests.support.ledger.small_lake import commit_batch
from tests.unit.plugins.lakehouse_airflow.operators.conftest import DAY, House

ORDERS, REVENUE = "silver.orders", "gold.revenue"
FORM = {"table": ORDERS, "downstream": True, "allow_deletes": False, "allow_missing": False, "why": "other keys"}
SAID = 'report(Outcome.NO_OP, "would rebuild silver.orders")'
DONE = f'report(Outcome.COMMITTED, "rebuilt", version=4, details={{"tables": {{"{ORDERS}": 4, "{REVENUE}": 7}}}})'


@pytest.fixture
def asked(house: House, run_of: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """The context of a run that ann has triggered with the form."""
    told: list[tuple[Any, Any]] = []
    events = {REBUILT_TABLE: SimpleNamespace(add=lambda asset, extra: told.append((asset, extra)))}
    context = run_of(run_type="manual", logical_date=None, start=None, end=None, events=events)
    context["dag_run"].triggering_user_name = "ann"
    return {**context, "params": FORM, "told": told}


def task_of(*, is_dry_run: bool) -> TableRebuildOperator:
    task = TableRebuildOperator(task_id="rebuild", is_dry_run=is_dry_run)
    assert task.table == "{{ params.table }}"
    task.table = ORDERS
    return task


@pytest.mark.usefixtures("warm_server")
def test_a_dry_run_gives_what_a_person_is_asked(house: House, asked: dict[str, Any]) -> None:
    house.job(SAID, Job.TABLE_REBUILD)
    task = task_of(is_dry_run=True)
    question = task.execute(asked)
    args = JobArgs.from_argv(task.application_args)
    assert (args.dry_run, args.table, task.job) == (True, ORDERS, Job.TABLE_REBUILD)
    assert args.request is not None
    assert RebuildRequest.load(args.request) == RebuildRequest(downstream=True, said_by="ann", why="other keys")
    assert question["subject"] == "Rebuild silver.orders?"
    assert "would rebuild silver.orders" in question["body"]
    assert "ann: **other keys**" in question["body"]
    assert asked["told"] == []


@pytest.mark.usefixtures("warm_server")
def test_each_table_that_was_switched_is_told_of(house: House, asked: dict[str, Any]) -> None:
    house.job(DONE, Job.TABLE_REBUILD)
    asked["ti"].xcom_pull = lambda task_ids: {"approve": {"responded_by_user": {"name": "eve"}}}[task_ids]
    task = task_of(is_dry_run=False)
    task.execute(asked)
    args = JobArgs.from_argv(task.application_args)
    assert (args.dry_run, args.request is None) == (False, False)
    assert RebuildRequest.load(args.request or Path()).said_by == "ann, approved by eve"
    assert [(asset, extra["version"]) for asset, extra in asked["told"]] == [
        (table_asset(ORDERS), 4),
        (table_asset(REVENUE), 7),
    ]
    assert asked["told"][0][1]["summary"] == f"{ORDERS} version 4: rebuilt"


MakeRun = Callable[..., dict[str, Any]]
NOTHING_TO_DO = "report(Outcome.NO_OP, 'nothing to do')"


def maintenance_task(job: Job, **given: bool) -> TableMaintenanceOperator:
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
    house.job(NOTHING_TO_DO, job)
    task = maintenance_task(job, **given)
    task.execute({**run_of(run_type="manual", logical_date=None, start=None, end=None), "params": params})
    assert JobArgs.from_argv(task.application_args).dry_run is dry_run


def test_a_table_that_does_not_exist_yet_starts_no_spark(house: House, run_of: MakeRun) -> None:
    result = maintenance_task(Job.TABLE_OPTIMIZE).execute(run_of())
    assert result["message"] == "bronze.orders does not exist yet"

"""A VACUUM that a person approves: what is shown, what is done, and what nobody has approved."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.operators.table_vacuum import ApprovedVacuumOperator, VacuumApprovalOperator
from millrace.contracts.job.args import Job, JobArgs
from millrace.control.ledger.holds import HoldEvent
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_document, write_specs
from tests.support.ledger.delta_tables import append, create_table
from tests.unit.plugins.lakehouse_airflow.operators.conftest import House, Record

ORDERS = "bronze.orders"


@pytest.fixture
def path(house: House) -> Path:
    """A table that keeps old files for a day, with one that nobody has needed for two days."""
    short = {"vacuum": {"retain": "24 hours", "readers": {"bi extract": "2 hours"}}}
    write_specs(house.folder / "tables", bronze_document(maintenance=short))
    path = house.root / "bronze" / "orders"
    create_table(path, deletedFileRetentionDuration="interval 24 hours")
    append(path)
    make_old_file(path, "first")
    return path


def make_old_file(path: Path, name: str) -> None:
    long_ago = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    (path / f"{name}.parquet").write_bytes(b"12345")
    os.utime(path / f"{name}.parquet", (long_ago, long_ago))


@pytest.fixture
def asked(run_of: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """The context of a run that ann has triggered with the form."""
    context = run_of(run_type="manual", logical_date=None, start=None, end=None)
    context["dag_run"].triggering_user_name = "ann"
    pushed = context["ti"].pushed
    context["ti"].xcom_pull = lambda task_ids, key: {"approve": pushed}[task_ids].get(key)
    return {**context, "params": {"table": ORDERS, "why": "the disk is full"}}


def vacuum(context: dict[str, Any]) -> JobArgs:
    task = ApprovedVacuumOperator(task_id="vacuum")
    assert task.table == "{{ params.table }}"
    task.table = ORDERS
    task.execute(context)
    return JobArgs.from_argv(task.application_args)


@pytest.mark.usefixtures("warm_server", "path")
def test_the_question_shows_what_goes_and_the_job_runs_in_the_name_of_who_approved(
    house: House, asked: dict[str, Any], record: Record
) -> None:
    house.job("report(Outcome.COMMITTED, 'deleted 1 file')", Job.TABLE_VACUUM)
    approval = VacuumApprovalOperator(task_id="approve")
    subject, body = approval.question(asked)
    assert subject == f"Delete old files of {ORDERS}?"
    assert "`vacuum, 5 B: no version of the last 1 day needs 1 file; the oldest that stays is version 0`" in body
    assert "`bi extract reads a version for 2 hours`" in body
    assert "Why, says ann: `the disk is full`" in body
    record(asked, approval, by="eve")
    arguments = vacuum(asked)
    assert (arguments.table, arguments.dry_run) == (ORDERS, False)
    assert arguments.allow_deletes == "ann, approved by eve: the disk is full"


def test_nothing_is_deleted_that_nobody_was_shown(
    house: House, asked: dict[str, Any], record: Record, path: Path
) -> None:
    with pytest.raises(AirflowFailException, match="Nobody approved this"):
        vacuum(asked)
    approval = VacuumApprovalOperator(task_id="approve")
    for by, option in ((None, ""), ("eve", "Reject")):
        record(asked, approval, by=by, option=option)
        with pytest.raises(AirflowFailException, match="Nobody approved this"):
            vacuum(asked)
    record(asked, approval, by="ann")
    with pytest.raises(AirflowFailException, match="ann asked for this, and may not approve it"):
        vacuum(asked)
    record(asked, approval, by="eve")
    measured_at = asked["ti"].pushed["measured_at"]
    asked["ti"].pushed["measured_at"] = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    with pytest.raises(AirflowFailException, match="eve approved something else than what there is to do now"):
        vacuum(asked)
    asked["ti"].pushed["measured_at"] = measured_at
    make_old_file(path, "second")
    with pytest.raises(AirflowFailException, match="eve approved something else"):
        vacuum(asked)
    OpsTables(LakehousePaths(house.root)).holds.record(HoldEvent.SET, "case-17", [ORDERS], said_by="bob", why="court")
    with pytest.raises(AirflowFailException, match=r"nothing is deleted: bob holds it since .* for case-17: court"):
        vacuum(asked)


def test_a_table_without_anything_to_delete_asks_nobody(asked: dict[str, Any], path: Path) -> None:
    (path / "first.parquet").unlink()
    with pytest.raises(AirflowFailException, match=r"bronze\.orders: there is nothing to delete at "):
        VacuumApprovalOperator(task_id="approve").question(asked)

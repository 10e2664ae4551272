"""The task that plans maintenance: a task for each action, the errors of single tables, figures for their pages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from deltalake import DeltaTable

from lakehouse_airflow.operators.maintenance_plan import MaintenancePlanOperator
from lakehouse_airflow.operators.table_maintenance import PlannedMaintenanceOperator, TableMaintenanceOperator
from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job, JobArgs
from millrace.control.ledger.holds import HoldEvent
from millrace.control.maintenance.file_layout import LEAST_SMALL_FILES
from millrace.control.maintenance.health_days import HealthDays
from millrace.control.maintenance.maintained import Maintained
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_document, write_specs
from tests.support.ledger.delta_tables import append, commit_file, create_table, create_table_of, judge
from tests.unit.plugins.lakehouse_airflow.operators.conftest import House


def test_each_action_is_a_task_and_a_table_that_cannot_be_measured_fails_in_its_own(
    house: House, run_of: Callable[..., dict[str, Any]]
) -> None:
    ops = OpsTables(LakehousePaths(house.root))
    write_specs(house.folder / "tables", bronze_document("bronze.planes"), bronze_document("bronze.unbuilt"))
    catalog = load_catalog(house.folder / "tables")
    for table, files in (("bronze.orders", LEAST_SMALL_FILES), ("bronze.planes", 1)):
        create_table_of(catalog.spec(table), Path(str(ops.paths.table(table))))
        for _ in range(files):
            append(Path(str(ops.paths.table(table))))
    stray = house.root / "bronze" / "orders" / "stray.parquet"
    stray.write_bytes(b"12345")
    os.utime(stray, (0, 0))
    commit_file(house.root / "bronze" / "planes", 1).write_text("")
    context = {**run_of(), "params": {"vacuum_dry_run": False}}
    planned = MaintenancePlanOperator(task_id="plan").execute(context)
    broken, optimize, vacuum = planned
    assert broken == {"table": "bronze.planes", "job": "table_optimize", "step": "not measured"}
    assert optimize == {"table": "bronze.orders", "job": "table_optimize", "step": "bin-pack", "sample": 0}
    assert (vacuum["table"], vacuum["step"]) == ("bronze.orders", "vacuum")
    assert known(ops).planned_at is None, "its turn comes when an action begins"
    days = ops.states.read("bronze.orders", HealthDays)
    assert days is not None
    assert days.days[-1].small_files == LEAST_SMALL_FILES
    mapped = [TableMaintenanceOperator(task_id=f"m{at}", **each) for at, each in enumerate(planned)]  # type: ignore[arg-type]
    assert [task.job for task in mapped] == [Job.TABLE_OPTIMIZE, Job.TABLE_OPTIMIZE, Job.TABLE_VACUUM]
    context["params"]["vacuum_dry_run"] = True
    assert [each["step"] for each in MaintenancePlanOperator(task_id="plan").execute(context)] == [
        "not measured", "bin-pack",
    ]  # fmt: skip


@pytest.mark.usefixtures("warm_server")
def test_a_scheduled_run_deletes_without_a_question_and_begins_nothing_after_its_time(
    house: House, run_of: Callable[..., dict[str, Any]]
) -> None:
    ops, path = OpsTables(LakehousePaths(house.root)), house.root / "bronze" / "orders"
    create_table_of(house.spec, path)
    (path / "stray.parquet").write_bytes(b"12345")
    os.utime(path / "stray.parquet", (0, 0))
    house.job("report(Outcome.NO_OP, 'nothing to do')", Job.TABLE_VACUUM)
    context = {**run_of(), "params": {"vacuum_dry_run": False}}
    [action] = MaintenancePlanOperator(task_id="plan").execute(context)
    task = PlannedMaintenanceOperator(task_id="maintain", most_time=timedelta(hours=1), **action)  # type: ignore[arg-type]
    context["dag_run"].start_date = datetime.now(UTC) - timedelta(hours=1, seconds=1)
    with pytest.raises(AirflowSkipException, match="The run began 1:00:00 ago or earlier"):
        task.execute(context)
    assert ops.states.read("bronze.orders", Maintained) == Maintained(table_id=known(ops).table_id, upto=0)
    context["dag_run"].start_date = datetime.now(UTC) - timedelta(minutes=59)
    task.execute(context)
    arguments = JobArgs.from_argv(task.application_args)
    assert (arguments.dry_run, arguments.allow_deletes) == (False, "")
    assert known(ops).planned_at is not None, "so that other tables have their turn next"
    ops.holds.record(HoldEvent.SET, "case-17", ["bronze.orders"], said_by="ann", why="court order")
    assert MaintenancePlanOperator(task_id="plan").execute(context) == []
    assert DeltaTable(str(path)).metadata().configuration["delta.enableExpiredLogCleanup"] == "false"


def known(ops: OpsTables) -> Maintained:
    found = ops.states.read("bronze.orders", Maintained)
    assert found is not None
    return found


def test_a_reader_that_is_behind_and_tables_over_the_limit_of_airflow_are_tasks_too(
    house: House, run_of: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = OpsTables(LakehousePaths(house.root))
    for table in ("bronze.a", "bronze.b", "bronze.c"):
        write_specs(house.folder / "tables", bronze_document(table))
        create_table(Path(str(ops.paths.table(table))), deletedFileRetentionDuration="interval 1 month")
    path = Path(str(ops.paths.table("bronze.orders")))
    create_table(path)
    judge(house.root, house.spec, append(path))
    replaced = commit_file(path, append(path))
    replaced.write_text(re.sub(r'"timestamp":\d+', '"timestamp":0', replaced.read_text()))
    run = run_of(run_type="manual", logical_date=None, start=None, end=None)
    context = {**run, "params": {"vacuum_dry_run": True}}
    planned = MaintenancePlanOperator(task_id="plan").execute(context)
    assert {"table": "bronze.orders", "job": "table_vacuum", "step": "vacuum is held back"} in planned
    assert [each["step"] for each in planned] == [*["not measured"] * 3, "vacuum is held back", "set properties"]
    assert DeltaTable(str(path)).metadata().configuration["delta.enableExpiredLogCleanup"] == "false", "for the reader"
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "4")
    assert [each["step"] for each in MaintenancePlanOperator(task_id="plan").execute(context)] == [
        "not measured", "not measured", "set properties",
    ], "half of the places are for the others"  # fmt: skip

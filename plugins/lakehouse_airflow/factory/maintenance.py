"""The DAG that maintains the files of all tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, TaskGroup

from lakehouse_airflow.factory.defaults import (
    EXECUTION_TIMEOUT,
    MAINTENANCE_PRIORITY,
    task_defaults,
    utc_intervals,
)
from lakehouse_airflow.operators.table_maintenance import TableMaintenanceOperator
from lakehouse_airflow.ui.links import MAINTENANCE_DAG_ID
from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec
from millrace.settings import Settings

_DOC = """Joins small files (OPTIMIZE), then removes files that no version of a table needs any more (VACUUM).

Of a gold table that is computed in parts, some groups of each new version are compared with a computation from scratch.

VACUUM only reports what it would remove while *Vacuum: dry run* is on, and never goes below a table's retention."""


def build_maintenance_dag(
    *,
    schedule: str,
    start_date: datetime,
    owner: str,
    vacuum_dry_run: bool = True,
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
    default_args: Mapping[str, Any] | None = None,
    **dag_arguments: Any,
) -> DAG:
    """Build the DAG that runs OPTIMIZE (unless a table's spec turns it off), then VACUUM, for every table.

    Args:
        schedule: a cron expression in UTC, at a quiet hour.
        start_date: the first interval's start.
        owner: the owner of the tasks.
        vacuum_dry_run: whether scheduled runs only report what VACUUM would remove; a manual run may choose.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this time a task and its processes are ended.
        default_args: further default arguments of the tasks; they replace those of the factory.
        dag_arguments: further arguments of Airflow's `DAG`; they replace those of the factory.
    """
    specs = load_catalog(Settings().tables).specs.values()
    own: dict[str, Any] = {
        "dag_display_name": "Table maintenance",
        "description": "OPTIMIZE and VACUUM for every table",
        "doc_md": _DOC,
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["lakehouse", "maintenance"],
    }
    with DAG(
        dag_id=MAINTENANCE_DAG_ID,
        schedule=utc_intervals(schedule),
        start_date=start_date,
        default_args={**task_defaults(owner, execution_timeout, MAINTENANCE_PRIORITY), **(default_args or {})},
        **{**own, **dag_arguments},
    ) as dag:
        for layer in dict.fromkeys(spec.layer for spec in specs):
            with TaskGroup(layer):
                for spec in specs:
                    if spec.layer == layer:
                        _add_table(spec, conn_id)
    # Set last: each task that is added later copies the Params, and copies take most of the parse time.
    dry_run = Param(
        vacuum_dry_run,
        type="boolean",
        title="Vacuum: dry run",
        description_md="Only report what VACUUM would remove. Off: remove it, but never below a table's retention.",
    )
    dag.params["vacuum_dry_run"] = dry_run
    return dag


def _add_table(spec: AnySpec, conn_id: str) -> None:
    own: dict[str, Any] = {"table": spec.table, "max_active_tis_per_dag": 1, "conn_id": conn_id}
    vacuum = TableMaintenanceOperator(
        task_id=f"{spec.name}_vacuum", task_display_name=f"{spec.table} vacuum", job=Job.TABLE_VACUUM, **own
    )
    if isinstance(spec, GoldSpec) and spec.values_to_verify:
        TableMaintenanceOperator(
            task_id=f"{spec.name}_verify",
            task_display_name=f"{spec.table} verify",
            job=Job.TABLE_VERIFY,
            sample=spec.values_to_verify,
            **own,
        )
    if spec.maintenance.optimize != "off":
        vacuum.set_upstream(
            TableMaintenanceOperator(
                task_id=f"{spec.name}_optimize",
                task_display_name=f"{spec.table} optimize",
                job=Job.TABLE_OPTIMIZE,
                **own,
            )
        )

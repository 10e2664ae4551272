"""One DAG that keeps the files of all tables in order."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, ParamsDict, TaskGroup

from include.catalog import load_catalog
from include.contracts.job.args import Job
from include.contracts.spec.table_spec import AnySpec
from include.settings import Settings
from lakehouse_airflow.factory.defaults import (
    EXECUTION_TIMEOUT,
    MAINTENANCE_PRIORITY,
    task_defaults,
    utc_intervals,
)
from lakehouse_airflow.operators.table_maintenance import TableMaintenanceOperator

_DOC = """Joins small files (OPTIMIZE), then removes files that no version of a table needs any more (VACUUM).

VACUUM only says what it would remove while *Vacuum: dry run* is on, and never goes below a table's retention."""


def build_maintenance_dag(
    *,
    schedule: str,
    start_date: datetime,
    owner: str,
    dag_id: str = "table_maintenance",
    vacuum_dry_run: bool = True,
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
) -> DAG:
    """The DAG that maintains every table of every domain: for each, OPTIMIZE (where its spec wants it), then VACUUM.

    Args:
        schedule: a cron expression in UTC, at a quiet hour.
        start_date: the first interval's start.
        owner: who looks after it.
        dag_id: the DAG id.
        vacuum_dry_run: whether scheduled runs only say what VACUUM would remove; a run by hand may choose otherwise.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this a task is ended, with all that it started.
    """
    specs = load_catalog(Settings().tables).specs.values()
    with DAG(
        dag_id=dag_id,
        dag_display_name="Table maintenance",
        description="OPTIMIZE and VACUUM for every table",
        doc_md=_DOC,
        schedule=utc_intervals(schedule),
        start_date=start_date,
        catchup=False,
        max_active_runs=1,
        tags=["lakehouse", "maintenance"],
        default_args=task_defaults(owner, execution_timeout, MAINTENANCE_PRIORITY),
    ) as dag:
        for layer in dict.fromkeys(spec.layer for spec in specs):
            with TaskGroup(layer):
                for spec in (one for one in specs if one.layer == layer):
                    _add_table(spec, {"conn_id": conn_id})
    # Set last: a task that is added later gets a copy of its own, and copies are most of what parsing costs.
    dag.params = ParamsDict({"vacuum_dry_run": _dry_run_field(vacuum_dry_run)})
    return dag


def _add_table(spec: AnySpec, common: dict[str, Any]) -> None:
    own = {"table": spec.table, "max_active_tis_per_dag": 1, **({"owner": spec.owner} if spec.owner else {}), **common}
    vacuum = TableMaintenanceOperator(
        task_id=f"{spec.name}_vacuum", task_display_name=f"{spec.name} vacuum", job=Job.TABLE_VACUUM, **own
    )
    if spec.maintenance.optimize != "off":
        vacuum.set_upstream(
            TableMaintenanceOperator(
                task_id=f"{spec.name}_optimize",
                task_display_name=f"{spec.name} optimize",
                job=Job.TABLE_OPTIMIZE,
                **own,
            )
        )


def _dry_run_field(default: bool) -> Param:
    return Param(
        default,
        type="boolean",
        title="Vacuum: dry run",
        description_md="Only say what VACUUM would remove. Off removes it, but never below a table's retention.",
    )

"""The DAG that maintains the files of all tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param

from lakehouse_airflow.factory.defaults import (
    EXECUTION_TIMEOUT,
    MAINTENANCE_PRIORITY,
    task_defaults,
    utc_intervals,
)
from lakehouse_airflow.operators.maintenance_plan import MaintenancePlanOperator
from lakehouse_airflow.operators.table_maintenance import PlannedMaintenanceOperator
from lakehouse_airflow.pool import DEFAULT_POOL, MAINTENANCE_POOL
from lakehouse_airflow.ui.links import MAINTENANCE_DAG_ID
from millrace.contracts.job.interval_args import MOST_BYTES, MOST_TIME

_DOC = """Measures the storage of every table, and does what it needs: joins small files (OPTIMIZE) or orders them
(Z-order), deletes the files that no version needs any more (VACUUM), forgets deleted keys, and compares some groups of
a new version of a gold table with a computation from scratch.

The task *plan* says in its log what each table needs and why, and what happens if it is left; each of its actions is a
task of *maintain*, one at a time. OPTIMIZE lets waiting batches go first. What does not fit into one run, or into its
time, is done by the next, the tables first that have waited the longest.

VACUUM deletes what a table has kept for its retention, unless a reader or a hold still needs it. Of a table that keeps
old files for less than 168 hours it deletes nothing: the DAG *Table vacuum* asks a person."""


def build_maintenance_dag(
    *,
    schedule: str,
    start_date: datetime,
    owner: str,
    vacuum_dry_run: bool = False,
    most_bytes: int = MOST_BYTES,
    most_time: timedelta = MOST_TIME,
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
    default_args: Mapping[str, Any] | None = None,
    **dag_arguments: Any,
) -> DAG:
    """Build the DAG that measures every table, and maintains those that need it.

    Args:
        schedule: a cron expression in UTC, at a quiet hour.
        start_date: the first interval's start.
        owner: the owner of the tasks.
        vacuum_dry_run: whether scheduled runs only report what VACUUM would delete; a manual run may choose.
        most_bytes: the most bytes that one run rewrites, but one table at least.
        most_time: after this time a run begins no further action.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this time a task and its processes are ended.
        default_args: further default arguments of the tasks; they replace those of the factory.
        dag_arguments: further arguments of Airflow's `DAG`; they replace those of the factory.
    """
    own: dict[str, Any] = {
        "dag_display_name": "Table maintenance",
        "description": "Measures the storage of every table, and maintains those that need it",
        "doc_md": _DOC,
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["lakehouse", "maintenance"],
    }
    with DAG(
        dag_id=MAINTENANCE_DAG_ID,
        schedule=utc_intervals(schedule),
        start_date=start_date,
        default_args={
            **task_defaults(owner, execution_timeout, MAINTENANCE_PRIORITY),
            "pool": MAINTENANCE_POOL,
            **(default_args or {}),
        },
        **{**own, **dag_arguments},
    ) as dag:
        plan = MaintenancePlanOperator(task_id="plan", most_bytes=most_bytes, pool=DEFAULT_POOL)
        PlannedMaintenanceOperator.partial(
            task_id="maintain",
            conn_id=conn_id,
            most_time=most_time,
            max_active_tis_per_dag=1,
            map_index_template="{{ task.table }}: {{ task.step }}",
        ).expand_kwargs(plan.output)
    # Set last: each task that is added later copies the Params.
    dag.params["vacuum_dry_run"] = Param(
        vacuum_dry_run,
        type="boolean",
        title="Vacuum: dry run",
        description_md="Only report what VACUUM would delete: files, and deleted keys.",
    )
    return dag

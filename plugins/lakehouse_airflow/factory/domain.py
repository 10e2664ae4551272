"""The DAG of a domain: bronze, silver and gold; each table is written, then checked, then read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, TaskGroup

from lakehouse_airflow.factory.defaults import (
    EXECUTION_TIMEOUT,
    WRITE_PRIORITY,
    run_form,
    task_defaults,
    utc_intervals,
)
from lakehouse_airflow.factory.docs import domain_doc
from lakehouse_airflow.factory.table_tasks import add_table
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from millrace.catalog import load_catalog
from millrace.settings import Settings


def build_domain_dag(
    domain: str,
    *,
    schedule: Any,
    start_date: datetime,
    owner: str,
    first_day: date | None = None,
    last_day: date | None = None,
    title: str = "",
    owner_links: Mapping[str, str] | None = None,
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
    default_args: Mapping[str, Any] | None = None,
    **dag_arguments: Any,
) -> DAG:
    """Build the DAG of `domain`: a group per layer, two tasks per table of `tables/<layer>/<domain>/`.

    A bronze table with landing files has a third task before them, which waits for the files.

    A table with a wrong spec keeps its tasks, so that the UI shows its past runs: the first task fails with the
    problems of the spec, and the tables that read it wait.

    Args:
        domain: the folder name of the domain's specs; also the DAG id.
        schedule: a cron expression in UTC; a run covers the time from one tick to the next. Or assets, such as
            `table_asset("gold.sales")`, a list of them, or `a | b`: a run covers the intervals of their events. Or a
            timetable of Airflow.
        start_date: the first interval's start.
        owner: the owner of the tables whose specs name none.
        first_day: the first UTC day for which there is data; None for no limit.
        last_day: the last UTC day with data; None for no limit.
        title: the DAG's name in the UI; the domain's name by default.
        owner_links: owner -> link behind the name in the UI.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this time a task and its processes are ended.
        default_args: further default arguments of the tasks, such as `pool`, `retries`, `retry_policy` or
            `on_failure_callback`; they replace those of the factory. The tasks that wait for files stay in Airflow's
            default pool.
        dag_arguments: further arguments of Airflow's `DAG`, such as `max_active_runs`, `deadline`,
            `on_failure_callback` or `tags`; they replace those of the factory.

    Raises:
        SpecError: the domain has no spec; Airflow shows this as an import error of the file.
    """
    specs = load_catalog(Settings().tables).of_domain(domain)
    own: dict[str, Any] = {
        "dag_display_name": title or domain.replace("_", " ").capitalize(),
        "description": f"The tables of {domain}: bronze, silver, gold",
        "doc_md": domain_doc(domain, specs),
        "catchup": False,
        "tags": ["lakehouse", domain],
        "owner_links": dict(owner_links or {}),
    }
    with DAG(
        dag_id=domain,
        schedule=utc_intervals(schedule) if isinstance(schedule, str) else schedule,
        start_date=start_date,
        default_args={**task_defaults(owner, execution_timeout, WRITE_PRIORITY), **(default_args or {})},
        **{**own, **dag_arguments},
    ) as dag:
        days = {"first_day": first_day, "last_day": last_day}
        gates: dict[str, QualityGateOperator] = {}
        for layer in dict.fromkeys(spec.layer for spec in specs):
            # Without a prefix of the group the UI shows whole ids: `silver.weather`, not two of `weather` in one list.
            with TaskGroup(layer, prefix_group_id=False):
                for spec in specs:
                    if spec.layer == layer:
                        gates[spec.table] = add_table(spec, gates, owner=owner, conn_id=conn_id, days=days)
    # Set last: each task that is added later copies the Params, and copies take most of the parse time.
    dag.params.update(run_form())
    return dag

"""The DAG of a domain: for each table of bronze, silver and gold, wait for its files, write it, check it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, TaskGroup

from lakehouse_airflow.assets import MAY_PROPOSE_COLUMNS, interval_asset, table_asset
from lakehouse_airflow.factory.defaults import (
    EXECUTION_TIMEOUT,
    WRITE_PRIORITY,
    run_form,
    task_defaults,
    utc_intervals,
)
from lakehouse_airflow.factory.docs import domain_doc, files_doc, table_doc
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from lakehouse_airflow.operators.table_write import TableWriteOperator
from lakehouse_airflow.pool import DEFAULT_POOL
from lakehouse_airflow.sensors.landing import LandingSensor
from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import BronzeSpec, SilverSpec
from millrace.settings import Settings
from millrace.specs.invalid_spec import MaybeInvalidSpec


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


def add_table(
    spec: MaybeInvalidSpec,
    gates: Mapping[str, QualityGateOperator],
    *,
    owner: str,
    conn_id: str,
    days: Mapping[str, date | None],
) -> QualityGateOperator:
    """Add the tasks of a table to the DAG that is being built, and return its gate.

    Args:
        spec: the spec of the table.
        gates: table -> its gate, for the tables of this DAG that are built before it.
        owner: the owner of a table whose spec names none.
        conn_id: the Airflow connection that says where Spark runs.
        days: `first_day` and `last_day` of the data.
    """
    own: dict[str, Any] = {**days, **({"owner": spec.owner} if spec.owner else {})}
    page = table_doc(spec, owner)
    of_job = {**own, "conn_id": conn_id, "doc_md": page}
    has_one_stream = not (isinstance(spec, BronzeSpec | SilverSpec) and spec.concurrent_by)
    asks_people = isinstance(spec, BronzeSpec) and spec.needs_column_approval
    write = TableWriteOperator(
        task_id=spec.table,
        table=spec.table,
        # Waiting in Airflow is cheaper than waiting for the lease.
        max_active_tis_per_dag=1 if has_one_stream else None,
        outlets=[MAY_PROPOSE_COLUMNS] if asks_people else [],
        **of_job,
    )
    gate = QualityGateOperator(
        task_id=f"{spec.table}_gate",
        task_display_name=f"{spec.table} gate",
        table=spec.table,
        # Airflow's graph of assets joins the inlets and outlets of one task, and this one publishes the table.
        inlets=[table_asset(table) for table in dict.fromkeys(spec.upstream_tables)],
        outlets=[table_asset(spec.table), interval_asset(spec.table)],
        **of_job,
    )
    write.set_upstream([gates[table] for table in dict.fromkeys(spec.upstream_tables) if table in gates])
    write.set_downstream(gate)
    # A wrong spec may not say what it reads; its sensor then fails with the problems of the spec.
    if spec.layer == "bronze" and not (isinstance(spec, BronzeSpec) and spec.reads_kafka):
        # Without `max_active_tis_per_dag`: Airflow counts waiting tasks for it, and the wait for one day would keep all
        # other days of the table from loading.
        sensor = LandingSensor(
            # No table can have this name.
            task_id=f"{spec.table}.files",
            task_display_name=f"{spec.table} files",
            table=spec.table,
            # A look at a folder takes no Spark.
            pool=DEFAULT_POOL,
            doc_md=files_doc(spec, page),
            **own,
        )
        write.set_upstream(sensor)
    return gate

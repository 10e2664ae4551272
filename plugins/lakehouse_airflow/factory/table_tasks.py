"""The tasks of one table in the DAG of its domain: wait for its files, write it, check it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from lakehouse_airflow.assets import MAY_PROPOSE_COLUMNS, interval_asset, table_asset
from lakehouse_airflow.factory.docs import files_doc, table_doc
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from lakehouse_airflow.operators.table_write import TableWriteOperator
from lakehouse_airflow.pool import DEFAULT_POOL
from lakehouse_airflow.sensors.landing import LandingSensor
from millrace.contracts.spec.table_spec import BronzeSpec, SilverSpec
from millrace.specs.invalid_spec import MaybeInvalidSpec


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

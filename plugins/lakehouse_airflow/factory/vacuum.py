"""The DAG that deletes what a table keeps for a short time only, if a person approves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, BaseNotifier, Param

from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT, MAINTENANCE_PRIORITY, task_defaults
from lakehouse_airflow.factory.forms import add_approval, approval_dag
from lakehouse_airflow.operators.table_vacuum import ApprovedVacuumOperator, VacuumApprovalOperator
from lakehouse_airflow.pool import MAINTENANCE_POOL
from lakehouse_airflow.ui.links import VACUUM_DAG_ID
from millrace.catalog import load_catalog
from millrace.settings import Settings

_DOC = """Deletes the old files, and the deleted keys, of a table that keeps them for less than 168 hours (`maintenance:
{{vacuum: {{retain: ...}}}}` in its spec). *Table maintenance* leaves these: a long read, or a write that has begun, may
need them.

The question says how many files and bytes go, and which version is the oldest that stays. The run
{waits_for_approval}."""


def build_table_vacuum_dag(
    *,
    owner: str,
    approvers: Sequence[str] = (),
    notifiers: Sequence[BaseNotifier] = (),
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
) -> DAG:
    """Build the DAG of a question and a VACUUM; it runs only by hand.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this time a task and its processes are ended.
    """
    tables = list(load_catalog(Settings().tables).specs)
    of_job = {**task_defaults(owner, execution_timeout, MAINTENANCE_PRIORITY), "pool": MAINTENANCE_POOL}
    with approval_dag(
        VACUUM_DAG_ID,
        "Deletes what a table keeps for a short time only, if a person approves",
        doc=_DOC,
        tag="maintenance",
        owner=owner,
    ) as dag:
        approve = add_approval(VacuumApprovalOperator, approvers, notifiers)
        approve.set_downstream(ApprovedVacuumOperator(task_id="vacuum", conn_id=conn_id, **of_job))
    # Set last, as in the other forms: they are fields of the run, not of the question.
    dag.params.update(
        {
            "table": Param(type="string", enum=tables or [""], title="Table"),
            "why": Param(type="string", minLength=1, title="Why", description_md="It is recorded with the deletion."),
        }
    )
    return dag

"""The DAG that restores an earlier version of any table, if a person approves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, BaseNotifier, Param

from lakehouse_airflow.assets import REPAIRED_TABLE
from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT
from lakehouse_airflow.factory.forms import add_approval, approval_dag
from lakehouse_airflow.operators.table_repair import RepairApprovalOperator, TableRepairOperator
from lakehouse_airflow.ui.links import REPAIR_DAG_ID
from millrace.catalog import load_catalog
from millrace.settings import Settings

_DOC = """Puts the rows of an earlier certified version back on top of a table, with everything that is known of them.

The question says what would change: rows, batches, landing files, readers, and each table downstream. The run
{waits_for_approval}. It does exactly that: if anything has changed by then, the task fails, and clearing the task
*approve* asks again. Afterwards run the tables downstream."""


def build_table_repair_dag(
    *,
    owner: str,
    approvers: Sequence[str] = (),
    notifiers: Sequence[BaseNotifier] = (),
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
) -> DAG:
    """Build the DAG of a question and a restore; it runs only by hand, without Spark.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
        execution_timeout: after this time the restore is ended; its next try goes on.
    """
    tables = list(load_catalog(Settings().tables).specs)
    with approval_dag(
        REPAIR_DAG_ID,
        "Restores an earlier version of a table",
        doc=_DOC,
        tag="maintenance",
        owner=owner,
    ) as dag:
        approve = add_approval(RepairApprovalOperator, approvers, notifiers)
        approve.set_downstream(
            TableRepairOperator(task_id="restore", outlets=[REPAIRED_TABLE], execution_timeout=execution_timeout)
        )
    # Set last, as in the other forms: they are fields of the run, not of the question.
    dag.params.update(
        {
            "table": Param(type="string", enum=tables or [""], title="Table"),
            "to": Param(
                type="string",
                minLength=1,
                title="To",
                description_md="A certified version, such as 12, or a UTC time, such as 2026-11-20T10:00: what readers "
                "used then.",
            ),
            "no_reload": Param(
                False,
                type="boolean",
                title="No reload",
                description_md="For bronze: do not load the landing files of undone batches again.",
            ),
            "why": Param(type="string", minLength=1, title="Why", description_md="It is recorded with the repair."),
        }
    )
    return dag

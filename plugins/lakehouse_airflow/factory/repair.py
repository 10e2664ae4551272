"""The DAG that repairs any table, if a person approves: it restores a version, or deletes or replaces rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, BaseNotifier, Param

from lakehouse_airflow.assets import REPAIRED_TABLE
from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT, WRITE_PRIORITY, task_defaults
from lakehouse_airflow.factory.forms import add_approval, approval_dag
from lakehouse_airflow.operators.table_repair import (
    DELETE,
    DRY_RUN,
    REPLACE,
    RESTORE,
    RepairApprovalOperator,
    TableRepairOperator,
)
from lakehouse_airflow.ui.links import REPAIR_DAG_ID
from millrace.catalog import load_catalog
from millrace.settings import Settings

_DOC = """Repairs a table: puts the rows of an earlier certified version back, with everything that is known of them; or
deletes the rows of a condition, or replaces them by those of another table or version.

The question says what would change: rows, batches, landing files, readers, and each table downstream. The run
{waits_for_approval}. It does exactly that: if anything has changed by then, the task fails, and clearing the task
*approve* asks again. Afterwards run the tables downstream."""


def build_table_repair_dag(
    *,
    owner: str,
    approvers: Sequence[str] = (),
    notifiers: Sequence[BaseNotifier] = (),
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
) -> DAG:
    """Build the DAG of a dry run, a question and a repair; it runs only by hand, and a restore without Spark.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this time the repair is ended; its next try goes on.
    """
    tables = list(load_catalog(Settings().tables).specs)
    of_job = {**task_defaults(owner, execution_timeout, WRITE_PRIORITY), "conn_id": conn_id}
    with approval_dag(
        REPAIR_DAG_ID,
        "Restores an earlier version of a table, or deletes or replaces rows",
        doc=_DOC,
        tag="maintenance",
        owner=owner,
    ) as dag:
        approve = add_approval(RepairApprovalOperator, approvers, notifiers)
        approve.set_upstream(TableRepairOperator(task_id=DRY_RUN, is_dry_run=True, **of_job))
        approve.set_downstream(TableRepairOperator(task_id="repair", outlets=[REPAIRED_TABLE], **of_job))
    # Set last, as in the other forms: they are fields of the run, not of the question.
    dag.params.update(
        {
            "table": Param(type="string", enum=tables or [""], title="Table"),
            "action": Param(RESTORE, type="string", enum=[RESTORE, DELETE, REPLACE], title="Action"),
            "to": Param(
                None,
                type=["null", "string"],
                title="To",
                description_md="To restore: a certified version, such as 12, or a UTC time, such as 2026-11-20T10:00: "
                "what readers used then.",
            ),
            "where": Param(
                None,
                type=["null", "string"],
                title="Where",
                description_md="To delete or replace: which rows of bronze or silver, such as `day = '2026-11-20'`.",
            ),
            "source": Param(
                None,
                type=["null", "string"],
                title="From",
                description_md="To replace: the table with the new rows, such as `silver.orders_fixed`, or an earlier "
                "version of the table, such as `silver.orders@12`.",
            ),
            "no_reload": Param(
                False,
                type="boolean",
                title="No reload",
                description_md="To restore bronze: do not load the landing files of undone batches again.",
            ),
            "why": Param(type="string", minLength=1, title="Why", description_md="It is recorded with the repair."),
        }
    )
    return dag

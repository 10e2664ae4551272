"""The DAG that rebuilds any table, if a person approves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, BaseNotifier, Param

from lakehouse_airflow.assets import REBUILT_TABLE
from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT, WRITE_PRIORITY, task_defaults
from lakehouse_airflow.factory.forms import add_approval, approval_dag, run_again_after, waiting_task_field
from lakehouse_airflow.operators.table_rebuild import DRY_RUN, RebuildApprovalOperator, TableRebuildOperator
from lakehouse_airflow.ui.links import REBUILD_DAG_ID
from millrace.catalog import load_catalog
from millrace.settings import Settings

_DOC = """Rebuilds a table from its sources by its present spec, as a change of keys, types or partitions requires.
Readers keep the table in use until the new table has passed its gate; then one commit replaces the rows, and the old
rows can be read by their version for as long as the table's spec keeps old files.

The link *Table rebuild* of a task whose table does not fit its spec opens the form, filled in except the reason; you
can also trigger it with the form. The task *dry_run* reports what would be done; then the run
{waits_for_approval}. After the rebuild the task of the link runs again. The next run for the table continues a run that
ended early; `lakehouse rebuild <table> --cancel` gives it up."""


def build_table_rebuild_dag(
    *,
    owner: str,
    approvers: Sequence[str] = (),
    notifiers: Sequence[BaseNotifier] = (),
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
) -> DAG:
    """Build the DAG of a dry run, a question and a rebuild; it runs only by hand.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this time a task and its processes are ended.
    """
    tables = list(load_catalog(Settings().tables).specs)
    # Only for the jobs: a question has no time limit, and needs no slot of Spark's pool.
    of_job = {**task_defaults(owner, execution_timeout, WRITE_PRIORITY), "conn_id": conn_id}
    with approval_dag(
        REBUILD_DAG_ID,
        "Rebuilds a table next to the one in use, and replaces it",
        doc=_DOC,
        tag="maintenance",
        owner=owner,
    ) as dag:
        approve = add_approval(RebuildApprovalOperator, approvers, notifiers)
        approve.set_upstream(TableRebuildOperator(task_id=DRY_RUN, is_dry_run=True, **of_job))
        rebuild = TableRebuildOperator(task_id="rebuild", is_dry_run=False, outlets=[REBUILT_TABLE], **of_job)
        approve.set_downstream(rebuild)
        run_again_after(rebuild)
    # Set last, as in the other forms: they are fields of the run, not of the question.
    dag.params.update(_form(tables))
    return dag


def _form(tables: list[str]) -> dict[str, Param]:
    """Return the fields of the form, in its order, without a default table, so that nobody rebuilds the wrong one."""
    return {
        "table": Param(type="string", enum=tables or [""], title="Table"),
        "downstream": Param(
            False,
            type="boolean",
            title="Downstream",
            description_md="Also rebuild the tables that read it, directly or not.",
        ),
        "allow_deletes": Param(
            False,
            type="boolean",
            title="Allow deletes",
            description_md="For silver: delete all keys that earlier snapshots lack, however many.",
        ),
        "allow_missing": Param(
            False,
            type="boolean",
            title="Allow missing files",
            description_md="For bronze: go on although some loaded landing files do not exist any more.",
        ),
        "allow_refused": Param(
            False,
            type="boolean",
            title="Allow refused",
            description_md="After a rebuild whose gate refused the new table: let it pass all the same. The question "
            "names the rules.",
        ),
        "why": Param(type="string", minLength=1, title="Why", description_md="It is recorded with the rebuild."),
        "task": waiting_task_field(),
    }

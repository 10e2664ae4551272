"""One DAG that builds a table anew, of whatever name, where a person approves it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, Param, ParamsDict

from include.catalog import load_catalog
from include.settings import Settings
from lakehouse_airflow.assets import REBUILT_TABLE
from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT, WRITE_PRIORITY, task_defaults
from lakehouse_airflow.factory.forms import approval_after, approval_dag
from lakehouse_airflow.operators.table_rebuild import TableRebuildOperator

_DOC = """Builds a table anew from its sources, by its spec as it is now: what a change of keys, types or partitions
needs. Readers keep the table in use until the new one has passed its gate; then one commit puts it in its place, and
the old rows can still be read by their version for as long as the table's spec keeps old files.

Trigger it with the form. The task *dry_run* says what would be done; somebody else than who triggered it then answers
under *Required Actions* (`LAKEHOUSE_SECOND_PERSON`). A run that ended early is gone on with by the next one for the
table; `lakehouse rebuild <table> --cancel` gives it up."""


def build_table_rebuild_dag(
    *,
    owner: str,
    approvers: Sequence[str] = (),
    dag_id: str = "table_rebuild",
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
) -> DAG:
    """The DAG of a dry run, a question and a rebuild, which runs only by hand.

    Args:
        owner: who looks after it.
        approvers: the Airflow users who may answer; all who may answer required actions for none.
        dag_id: the DAG id.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this the task is ended, with all that it started.
    """
    tables = list(load_catalog(Settings().tables).specs)
    # Of the jobs alone: a question has no time limit, and needs no place in Spark's pool.
    of_job = {**task_defaults(owner, execution_timeout, WRITE_PRIORITY), "conn_id": conn_id}
    with approval_dag(
        dag_id,
        "Table rebuild",
        "Builds a table anew beside the one in use, and puts it in its place",
        doc=_DOC,
        tag="maintenance",
        owner=owner,
    ) as dag:
        dry_run = TableRebuildOperator(task_id="dry_run", **of_job)
        approve = approval_after(dry_run, approvers)
        rebuild = TableRebuildOperator(
            task_id="rebuild", approval_task_id=approve.task_id, outlets=[REBUILT_TABLE], **of_job
        )
        approve.set_downstream(rebuild)
    # Set last, as in the other forms: they are fields of the run, and not of the question.
    dag.params = ParamsDict(_form(tables))
    return dag


def _form(tables: list[str]) -> dict[str, Param]:
    """The fields of the form, in its order; no table is filled in, so that nobody builds another one by oversight."""
    return {
        "table": Param(type="string", enum=tables or [""], title="Table"),
        "downstream": Param(
            False,
            type="boolean",
            title="Downstream",
            description_md="Build the tables that read it, directly or not, anew as well.",
        ),
        "allow_deletes": Param(
            False,
            type="boolean",
            title="Let keys go",
            description_md="Of silver: delete on the way as many keys by absence as the snapshots of before lack.",
        ),
        "allow_missing": Param(
            False,
            type="boolean",
            title="Do without missing files",
            description_md="Of bronze: go on although landing files that it has loaded are not there any more.",
        ),
        "why": Param(type="string", minLength=1, title="Why", description_md="It stays with the rebuild."),
    }

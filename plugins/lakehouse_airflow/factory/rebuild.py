"""One DAG that builds a table anew, of whatever name, where a person approves it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, Param, ParamsDict

from include.catalog import load_catalog
from include.settings import Settings
from lakehouse_airflow.assets import REBUILT_TABLE
from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT, WRITE_PRIORITY, task_defaults
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator
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
    with DAG(
        dag_id=dag_id,
        dag_display_name="Table rebuild",
        description="Builds a table anew beside the one in use, and puts it in its place",
        doc_md=_DOC,
        schedule=None,
        catchup=False,
        # It runs by hand alone, and then somebody waits for it: a run of a paused DAG would wait without a word.
        is_paused_upon_creation=False,
        tags=["lakehouse", "maintenance"],
        default_args=task_defaults(owner, execution_timeout, WRITE_PRIORITY),
    ) as dag:
        dry_run = TableRebuildOperator(task_id="dry_run", conn_id=conn_id, dry_run=True)
        approve = SecondPersonApprovalOperator(
            task_id="approve",
            subject="{{ ti.xcom_pull(task_ids='dry_run')['subject'] }}",
            body="{{ ti.xcom_pull(task_ids='dry_run')['body'] }}",
            assigned_users=[{"id": name, "name": name} for name in approvers] or None,
        )
        rebuild = TableRebuildOperator(task_id="rebuild", conn_id=conn_id, outlets=[REBUILT_TABLE])
        dry_run.set_downstream(approve)
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
        "allow_missing": Param(
            False,
            type="boolean",
            title="Do without missing files",
            description_md="Of bronze: go on although landing files that it has loaded are not there any more.",
        ),
        "why": Param(type="string", minLength=1, title="Why", description_md="It stays with the rebuild."),
    }

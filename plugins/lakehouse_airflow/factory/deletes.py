"""One DAG that lets more keys of a table go than its spec lets go unasked, where a person approves it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import DAG, ParamsDict

from include.catalog import load_catalog
from include.settings import Settings
from lakehouse_airflow.factory.forms import approval_after, approval_dag, version_form
from lakehouse_airflow.operators.delete_approval import AllowDeletesOperator, AskedDeletesOperator

_DOC = """Lets the deletes of **one** batch go through that are more than `max_deleted_percent` of its table: a full
snapshot that lacks many keys, or is empty; a truncate; a file that was delivered again without them.

Trigger it with the form, as the log of the task that stopped says. It waits for an answer under *Required Actions*;
`ops.deletes` keeps who approved what, and why. Whoever triggered it may reject, but not approve, unless nobody else may
(`LAKEHOUSE_SECOND_PERSON`). After an *Approve*, clear the task that stopped, with what follows."""


def build_delete_approval_dag(*, owner: str, approvers: Sequence[str] = ()) -> DAG:
    """The DAG of one question, which runs only by hand.

    Args:
        owner: who looks after it.
        approvers: the Airflow users who may answer; all who may answer required actions for none.
    """
    tables = [spec.table for spec in load_catalog(Settings().tables).specs.values() if spec.layer == "silver"]
    with approval_dag(
        "delete_approval",
        "Delete approval",
        "Lets many keys of a table go, where a person approves it",
        doc=_DOC,
        tag="deletes",
        owner=owner,
    ) as dag:
        asked = AskedDeletesOperator(task_id="deletes")
        approve = approval_after(asked, approvers)
        allow = AllowDeletesOperator(task_id="allow", approval_task_id=approve.task_id)
        approve.set_downstream(allow)
    # Set last, as in the other forms: they are fields of the run, and not of the question.
    form = version_form(
        tables,
        version=("Source version", "The version of the table's source, as the log of the task that stopped names it."),
        reason="Why they may go; it stays in `ops.deletes`.",
    )
    dag.params = ParamsDict(form)
    return dag

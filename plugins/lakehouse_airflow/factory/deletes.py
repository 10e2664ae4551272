"""The DAG that allows more deleted keys than a spec allows without approval, if a person approves."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import DAG, BaseNotifier

from lakehouse_airflow.factory.forms import add_approval, approval_dag, run_again_after, version_form
from lakehouse_airflow.operators.delete_approval import AllowDeletesOperator, DeleteApprovalOperator
from lakehouse_airflow.ui.links import DELETES_DAG_ID
from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.settings import Settings

_DOC = """Allows the deletes of **one** batch that are more than `max_deleted_percent` of its table: a full snapshot
that lacks many keys, or is empty; a truncate; a file that was delivered again without them.

The link *Delete approval* of the stopped task opens the form, filled in except the reason. The DAG then
{waits_for_approval}; `ops.deletes` records who approved what, and why. After an
*Approve* the stopped task runs again, with those after it; clear it yourself if the form does not name it."""


def build_delete_approval_dag(
    *, owner: str, approvers: Sequence[str] = (), notifiers: Sequence[BaseNotifier] = ()
) -> DAG:
    """Build the DAG, which runs only by hand.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
    """
    tables = [spec.table for spec in load_catalog(Settings().tables).specs.values() if isinstance(spec, SilverSpec)]
    with approval_dag(
        DELETES_DAG_ID,
        "Allows many deleted keys of a table, if a person approves",
        doc=_DOC,
        tag="deletes",
        owner=owner,
    ) as dag:
        approve = add_approval(DeleteApprovalOperator, approvers, notifiers)
        allow = AllowDeletesOperator(task_id="allow")
        approve.set_downstream(allow)
        run_again_after(allow)
    # Set last, as in the other forms: they are fields of the run, not of the question.
    dag.params.update(
        version_form(
            tables,
            version=("Source version", "The version of the table's source, as the log of the stopped task names it."),
            reason="Why they may be deleted; `ops.deletes` records it.",
        )
    )
    return dag

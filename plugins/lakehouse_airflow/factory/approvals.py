"""The DAGs that ask people: a refused version that may pass, many deletes, new fields that may become columns."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import DAG, BaseNotifier

from lakehouse_airflow.assets import OVERRIDDEN_TABLE, PROPOSED_COLUMNS
from lakehouse_airflow.factory.forms import add_approval, approval_dag, run_again_after, version_form
from lakehouse_airflow.operators.column_approval import ColumnApprovalOperator, OpenQuestionsOperator
from lakehouse_airflow.operators.delete_approval import AllowDeletesOperator, DeleteApprovalOperator
from lakehouse_airflow.operators.gate_override import GateOverrideOperator, OverrideApprovalOperator
from lakehouse_airflow.retries import RETRIES, RETRY_DELAY
from lakehouse_airflow.ui.links import DELETES_DAG_ID, OVERRIDE_DAG_ID
from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.settings import Settings

_OVERRIDE_DOC = """\
Lets **one** refused version of a table pass, once: readers use it from then on, and `ops.gates` records who
approved it and why.

The link *Gate override* of the gate's task opens this form, with all fields filled in except the reason. The DAG then
{waits_for_approval}. After *Approve*, the *Waiting task* runs again with its downstream tasks. If that field is empty,
clear the gate's task yourself. The rules check later versions again."""


def build_gate_override_dag(
    *, owner: str, approvers: Sequence[str] = (), notifiers: Sequence[BaseNotifier] = ()
) -> DAG:
    """Build the DAG that lets a refused version of any table pass; it runs only by hand.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
    """
    tables = list(load_catalog(Settings().tables).specs)
    with approval_dag(
        OVERRIDE_DAG_ID,
        "Lets a refused version of a table pass, if a person approves",
        doc=_OVERRIDE_DOC,
        tag="gates",
        owner=owner,
    ) as dag:
        approve = add_approval(OverrideApprovalOperator, approvers, notifiers)
        override = GateOverrideOperator(task_id="override", outlets=[OVERRIDDEN_TABLE])
        approve.set_downstream(override)
        # A task of its own: the cleared gate must find the event that the override emits at its end.
        run_again_after(override)
    # Set last, as in the other forms: they are fields of the run, not of the question.
    dag.params.update(
        version_form(
            tables,
            version=("Version", "The refused version, as the gate's log names it."),
            reason="Why readers may use it; `ops.gates` records it.",
        )
    )
    return dag


_DELETES_DOC = """\
Allows the deletes of **one** batch that are more than `max_deleted_percent` of its table: a full snapshot
that lacks many keys, or is empty; a truncate; a file that was delivered again without them.

The link *Delete approval* of the stopped task opens the form, filled in except the reason. The DAG then
{waits_for_approval}; `ops.deletes` records who approved what, and why. After an
*Approve* the stopped task runs again, with those after it; clear it yourself if the form does not name it."""


def build_delete_approval_dag(
    *, owner: str, approvers: Sequence[str] = (), notifiers: Sequence[BaseNotifier] = ()
) -> DAG:
    """Build the DAG that allows more deletes than a spec allows; it runs only by hand.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
    """
    tables = [spec.table for spec in load_catalog(Settings().tables).specs.values() if isinstance(spec, SilverSpec)]
    with approval_dag(
        DELETES_DAG_ID,
        "Allows many deleted keys of a table, if a person approves",
        doc=_DELETES_DOC,
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


_COLUMNS_DOC = """Asks whether an undeclared field of a source becomes a column.

It runs when a bronze table with `evolve: ask` has read such a field, and waits for an answer to each question under
*Required Actions*. Until then, and after a *Reject*, `_rescued` keeps the values. Trigger it by hand to be asked again
about all open questions."""


def build_column_approvals_dag(*, owner: str) -> DAG:
    """Build the DAG with one question per new field of all tables that ask.

    Args:
        owner: the owner of the tasks.
    """
    with DAG(
        dag_id="column_approvals",
        dag_display_name="Column approvals",
        description="Asks whether new fields of a source become columns",
        doc_md=_COLUMNS_DOC,
        schedule=[PROPOSED_COLUMNS],
        catchup=False,
        # Its runs are questions to people; the run of a paused DAG would never start, and say nothing.
        is_paused_upon_creation=False,
        tags=["lakehouse", "columns"],
        default_args={"owner": owner, "retries": RETRIES, "retry_delay": RETRY_DELAY},
    ) as dag:
        questions = OpenQuestionsOperator(task_id="open_questions")
        ColumnApprovalOperator.partial(
            task_id="approve", map_index_template="{{ task.table }}: {{ task.column }}"
        ).expand_kwargs(questions.output)
    return dag

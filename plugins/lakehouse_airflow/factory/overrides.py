"""The DAG that lets a refused version of any table pass, if a person approves."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import DAG, BaseNotifier

from lakehouse_airflow.assets import OVERRIDDEN_TABLE
from lakehouse_airflow.factory.forms import add_approval, approval_dag, run_again_after, version_form
from lakehouse_airflow.operators.gate_override import GateOverrideOperator, OverrideApprovalOperator
from lakehouse_airflow.ui.links import OVERRIDE_DAG_ID
from millrace.catalog import load_catalog
from millrace.settings import Settings

_DOC = """Lets **one** refused version of a table pass, once: readers use it from then on, and `ops.gates` records who
approved it and why.

The link *Gate override* of the gate's task opens this form, with all fields filled in except the reason. The DAG then
{waits_for_approval}. After *Approve*, the *Waiting task* runs again with its downstream tasks. If that field is empty,
clear the gate's task yourself. The rules check later versions again."""


def build_gate_override_dag(
    *, owner: str, approvers: Sequence[str] = (), notifiers: Sequence[BaseNotifier] = ()
) -> DAG:
    """Build the DAG, which runs only by hand.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
    """
    tables = list(load_catalog(Settings().tables).specs)
    with approval_dag(
        OVERRIDE_DAG_ID,
        "Lets a refused version of a table pass, if a person approves",
        doc=_DOC,
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

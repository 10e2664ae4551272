"""One DAG that lets a refused version pass, of whatever table, where a person approves it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import DAG, ParamsDict

from include.catalog import load_catalog
from include.settings import Settings
from lakehouse_airflow.assets import OVERRIDDEN_TABLE
from lakehouse_airflow.factory.forms import approval_after, approval_dag, version_form
from lakehouse_airflow.operators.gate_override import GateOverrideOperator, RefusalOperator
from lakehouse_airflow.ui.links import OVERRIDE_DAG_ID

_DOC = """Lets **one** refused version of a table pass, once: readers use it from then on, and `ops.gates` keeps who
approved it and why.

Trigger it with the form, as the log of the refused gate says. It waits for an answer under *Required Actions*, by
somebody else than who triggered it (`LAKEHOUSE_SECOND_PERSON`). After an *Approve*,
clear the gate's task with what follows it. Later versions are judged by the rules again."""


def build_gate_override_dag(*, owner: str, approvers: Sequence[str] = ()) -> DAG:
    """The DAG of one question, which runs only by hand.

    Args:
        owner: who looks after it.
        approvers: the Airflow users who may answer; all who may answer required actions for none.
    """
    tables = list(load_catalog(Settings().tables).specs)
    with approval_dag(
        OVERRIDE_DAG_ID,
        "Gate override",
        "Lets a refused version of a table pass, where a person approves it",
        doc=_DOC,
        tag="gates",
        owner=owner,
    ) as dag:
        refusal = RefusalOperator(task_id="refusal")
        approve = approval_after(refusal, approvers)
        override = GateOverrideOperator(
            task_id="override", approval_task_id=approve.task_id, outlets=[OVERRIDDEN_TABLE]
        )
        approve.set_downstream(override)
    # Set last, as in the other forms: they are fields of the run, and not of the question.
    form = version_form(
        tables,
        version=("Version", "The version that was refused, as the gate's log names it."),
        reason="Why it may be read all the same; it stays with the version.",
    )
    dag.params = ParamsDict(form)
    return dag

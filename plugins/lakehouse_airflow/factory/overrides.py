"""One DAG that lets a refused version pass, of whatever table, where a person approves it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import DAG, ParamsDict

from include.catalog import load_catalog
from include.settings import Settings
from lakehouse_airflow.assets import OVERRIDDEN_TABLE
from lakehouse_airflow.factory.defaults import RETRY_DELAY
from lakehouse_airflow.factory.forms import version_form
from lakehouse_airflow.operators.gate_override import GateOverrideOperator, RefusalOperator
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator
from lakehouse_airflow.retries import RETRIES
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
    with DAG(
        dag_id=OVERRIDE_DAG_ID,
        dag_display_name="Gate override",
        description="Lets a refused version of a table pass, where a person approves it",
        doc_md=_DOC,
        schedule=None,
        catchup=False,
        # It runs by hand alone, and then somebody waits for it: a run of a paused DAG would wait without a word.
        is_paused_upon_creation=False,
        tags=["lakehouse", "gates"],
        default_args={"owner": owner, "retries": RETRIES, "retry_delay": RETRY_DELAY},
    ) as dag:
        refusal = RefusalOperator(task_id="refusal")
        approve = SecondPersonApprovalOperator(
            task_id="approve",
            subject="{{ ti.xcom_pull(task_ids='refusal')['subject'] }}",
            body="{{ ti.xcom_pull(task_ids='refusal')['body'] }}",
            assigned_users=[{"id": name, "name": name} for name in approvers] or None,
        )
        override = GateOverrideOperator(
            task_id="override", approval_task_id=approve.task_id, outlets=[OVERRIDDEN_TABLE]
        )
        refusal.set_downstream(approve)
        approve.set_downstream(override)
    # Set last, as in the other forms: they are fields of the run, and not of the question.
    form = version_form(
        tables,
        version=("Version", "The version that was refused, as the gate's log names it."),
        reason="Why it may be read all the same; it stays with the version.",
    )
    dag.params = ParamsDict(form)
    return dag

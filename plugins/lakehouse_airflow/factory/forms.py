"""DAGs in which a person lets something happen to one version of a table: the DAG, its question, its form."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import DAG, BaseOperator, Param

from lakehouse_airflow.factory.defaults import RETRY_DELAY
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator
from lakehouse_airflow.retries import RETRIES


def approval_dag(dag_id: str, name: str, description: str, *, doc: str, tag: str, owner: str) -> DAG:
    """A DAG that runs only by hand, still without tasks."""
    return DAG(
        dag_id=dag_id,
        dag_display_name=name,
        description=description,
        doc_md=doc,
        schedule=None,
        catchup=False,
        # It runs by hand alone, and then somebody waits for it: a run of a paused DAG would wait without a word.
        is_paused_upon_creation=False,
        tags=["lakehouse", tag],
        default_args={"owner": owner, "retries": RETRIES, "retry_delay": RETRY_DELAY},
    )


def approval_after(task: BaseOperator, approvers: Sequence[str]) -> SecondPersonApprovalOperator:
    """The question whose `subject` and `body` a task returns.

    Args:
        task: it.
        approvers: the Airflow users who may answer; all who may answer required actions for none.
    """
    told = f"ti.xcom_pull(task_ids='{task.task_id}')"
    approve = SecondPersonApprovalOperator(
        task_id="approve",
        subject=f"{{{{ {told}['subject'] }}}}",
        body=f"{{{{ {told}['body'] }}}}",
        assigned_users=[{"id": name, "name": name} for name in approvers] or None,
    )
    task.set_downstream(approve)
    return approve


def version_form(tables: Sequence[str], *, version: tuple[str, str], reason: str) -> dict[str, Param]:
    """The fields of the form, in its order; none is filled in, so that nobody lets another table pass by oversight.

    Args:
        tables: the tables that may be meant.
        version: title and meaning of the version.
        reason: what the reason is about.
    """
    title, meaning = version
    return {
        "table": Param(type="string", enum=list(tables) or [""], title="Table"),
        "version": Param(type="integer", minimum=0, title=title, description_md=meaning),
        "reason": Param(type="string", minLength=1, title="Reason", description_md=reason),
    }

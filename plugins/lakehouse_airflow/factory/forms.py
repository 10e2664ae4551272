"""DAGs in which a person approves something about one version of a table: the DAG, its question, its form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from airflow.sdk import DAG, BaseNotifier, BaseOperator, Param

from lakehouse_airflow.alerts.approval import ApprovalAlert
from lakehouse_airflow.operators.second_person import APPROVE, SecondPersonApprovalOperator
from lakehouse_airflow.operators.waiting_task import RunWaitingTaskOperator
from lakehouse_airflow.retries import RETRIES, RETRY_DELAY
from millrace.settings import Settings

Approval = TypeVar("Approval", bound=SecondPersonApprovalOperator)


def waits_for_approval() -> str:
    """Return for whose approval a run waits in this installation, for the documentation of its DAG."""
    if Settings().asks_second_person:
        who = "another person than the one who triggered it approves (`LAKEHOUSE_SECOND_PERSON`)"
    else:
        who = "somebody approves, which the one who triggered it may do, too (`LAKEHOUSE_SECOND_PERSON=false`)"
    return f"waits under *Required Actions* until {who}"


def approval_dag(dag_id: str, description: str, *, doc: str, tag: str, owner: str) -> DAG:
    """Return a DAG without schedule and, so far, without tasks; `doc` says by `{waits_for_approval}` who approves."""
    return DAG(
        dag_id=dag_id,
        dag_display_name=dag_id.replace("_", " ").capitalize(),
        description=description,
        doc_md=doc.format(waits_for_approval=waits_for_approval()),
        schedule=None,
        catchup=False,
        # A person triggers it and waits; the run of a paused DAG would never start, and say nothing.
        is_paused_upon_creation=False,
        tags=["lakehouse", tag],
        default_args={"owner": owner, "retries": RETRIES, "retry_delay": RETRY_DELAY},
    )


def add_approval(
    kind: type[Approval], approvers: Sequence[str], notifiers: Sequence[BaseNotifier], **more: Any
) -> Approval:
    """Add the question of an approval.

    Args:
        kind: the operator that knows what to ask.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers that are told of the question.
        more: further arguments of the operator.
    """
    return kind(
        task_id=APPROVE,
        assigned_users=[{"id": name, "name": name} for name in approvers] or None,
        notifiers=ApprovalAlert(notifiers),
        **more,
    )


def run_again_after(task: BaseOperator) -> None:
    """Add the task that clears the waiting task of the form, if `task` ended well."""
    task.set_downstream(RunWaitingTaskOperator(task_id="run_again"))


def version_form(tables: Sequence[str], *, version: tuple[str, str], reason: str) -> dict[str, Param]:
    """Return the fields of the form, in its order, most without defaults, so that nobody approves the wrong table.

    Args:
        tables: the tables to choose from.
        version: title and description of the version.
        reason: description of the reason.
    """
    title, description = version
    return {
        "table": Param(type="string", enum=list(tables) or [""], title="Table"),
        "version": Param(type="integer", minimum=0, title=title, description_md=description),
        "reason": Param(type="string", minLength=1, title="Reason", description_md=reason),
        "task": waiting_task_field(),
    }


def waiting_task_field() -> Param:
    """Return the field `task` of a form: which task runs again after an approval."""
    return Param(
        None,
        type=["null", "string"],
        title="Waiting task",
        description_md="The task that runs again after the approval, as `<dag>/<run>/<task>`, with "
        "`/<map index>` if it is mapped. A link to this form fills it in.",
    )

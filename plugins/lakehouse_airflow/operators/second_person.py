"""An approval by another person than the one who asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from lakehouse_airflow.hooks.airflow_api import CONN_ID, HOW_TO_CONNECT, own_airflow_api
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.question import Question, QuestionOperator, quoted, remarked
from lakehouse_airflow.ui.links import NOT_MAPPED
from millrace.contracts.visible_text import visible

if TYPE_CHECKING:
    from airflow.sdk import Context

APPROVE = "approve"
"""The id of the task that asks, in every DAG that acts on an approval."""


class SecondPersonApprovalOperator(QuestionOperator):
    """Ask for an approval that the person who triggered the run may not give, unless nobody else may answer.

    If `assigned_users` names the people who may answer, Airflow itself refuses that person's answer; if everybody may
    answer, their approval fails the task. They may always reject. `LAKEHOUSE_SECOND_PERSON=false` lets people approve
    their own requests, for an installation with one person.
    """

    def execute(self, context: Context) -> Any:
        """Ask those who may answer."""
        with leave_failure(self, context):
            if prepare_process().asks_second_person and (others := self._others(who_asked(context))):
                self.assigned_users = others
            return super().execute(context)

    def remark(self, context: Context) -> str:
        """Return that the person who asked may not approve, where another one has to."""
        asked_by = who_asked(context)
        return _remark(asked_by) if asked_by and self._needs_another(asked_by) else ""

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Accept or refuse the answer.

        Raises:
            AirflowFailException: the person who asked has approved it.
            HITLTriggerEventError, HITLTimeoutError: as `ApprovalOperator`.
        """
        with leave_failure(self, context):
            return self._accepted(context, super().execute_complete(context, event))

    def _accepted(self, context: Context, answer: Any) -> Any:
        asked_by, who = who_asked(context), (answer["responded_by_user"] or {}).get("name")
        is_own = bool(who) and who == asked_by and answer["chosen_options"] == [self.APPROVE]
        if is_own and self._needs_another(asked_by):
            raise AirflowFailException(own_approval(str(who)))
        return answer

    def _needs_another(self, asked_by: str | None) -> bool:
        return prepare_process().asks_second_person and bool(self._others(asked_by) or not self.assigned_users)

    def _others(self, asked_by: str | None) -> list[Any]:
        """Return the assigned users without `asked_by`; empty if no user is assigned, or no other one."""
        return [user for user in self.assigned_users or () if asked_by not in (user["id"], user["name"])]


def own_approval(who: str) -> str:
    """Return why a person's approval of their own request does not count."""
    return (
        f"{who} asked for this, and may not approve it.\n"
        f"Clear the task {APPROVE}, and have somebody else answer; or let people approve their own requests "
        "(LAKEHOUSE_SECOND_PERSON=false)."
    )


def approved_by(context: Context, question: Question) -> str:
    """Return the name of the person who approved exactly this in the run's task `APPROVE`.

    Airflow's own record of the answer decides. What the task has returned proves nothing: whoever may edit XComs, or
    mark a task as successful, can write it.

    Args:
        context: the context of a task after `APPROVE`.
        question: what is to be done now, in the words of the question.

    Raises:
        AirflowFailException: nobody approved, or only the person who asked; or something else was approved.
        AirflowException: Airflow's API does not answer.
    """
    answer = _recorded_answer(context)
    who = (answer.get("responded_by_user") or {}).get("name")
    if not who or answer["chosen_options"] != [QuestionOperator.APPROVE]:
        raise AirflowFailException("Nobody approved this, and a person must.\nTrigger the DAG again.")
    if prepare_process().asks_second_person and who == who_asked(context) and not answer["assigned_users"]:
        raise AirflowFailException(own_approval(who))
    subject, body = map(visible, question)
    # The remark says nothing of what is approved, and whether there is one depends on a setting.
    if answer["subject"] != subject or answer["body"] not in (body, remarked(body, _remark(who_asked(context)))):
        raise AirflowFailException(
            f"{who} approved something else than what there is to do now.\n"
            f"Clear the task {APPROVE}: it asks again, and shows what there is now: {visible(question.subject)}"
        )
    return str(who)


def _recorded_answer(context: Context) -> dict[str, Any]:
    """Return what Airflow has recorded about the question of the run, and about its answer; empty if none was asked."""
    run = context["dag_run"]
    place = f"/api/v2/dags/{quote(run.dag_id, safe='')}/dagRuns/{quote(run.run_id, safe='')}/taskInstances/{APPROVE}"
    try:
        with own_airflow_api() as api:
            found = api.get(f"{place}/{NOT_MAPPED}/hitlDetails")
            return {} if found.status_code == httpx.codes.NOT_FOUND else dict(found.raise_for_status().json())
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"Nobody knows who approved this: there is no connection {CONN_ID!r}.\n{HOW_TO_CONNECT}"
        ) from None
    except httpx.HTTPError as error:
        raise AirflowException(
            f"Airflow's API does not say who approved this: {error}\nCorrect the connection {CONN_ID}."
        ) from None


def _remark(asked_by: str | None) -> str:
    return (
        f"{quoted(str(asked_by))} asked for this and may reject it, but **not approve it**: another person must "
        "(`LAKEHOUSE_SECOND_PERSON`)."
    )


def who_asked(context: Context) -> str | None:
    """Return the name of the person who triggered the run; None if no person did."""
    return getattr(context["dag_run"], "triggering_user_name", None)

"""An approval by another person than the one who asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.operators.question import QuestionOperator

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
        if prepare_process().second_person and (others := self._others(who_asked(context))):
            self.assigned_users = others
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Accept or refuse the answer.

        Raises:
            AirflowFailException: the person who asked has approved it.
            HITLTriggerEventError, HITLTimeoutError: as `ApprovalOperator`.
        """
        answer = super().execute_complete(context, event)
        asked_by, who = who_asked(context), (answer["responded_by_user"] or {}).get("name")
        is_own = bool(who) and who == asked_by and answer["chosen_options"] == [self.APPROVE]
        if is_own and prepare_process().second_person and (self._others(asked_by) or not self.assigned_users):
            raise AirflowFailException(
                f"{who} asked for this, and may not approve it.\n"
                "Clear this task, and have somebody else answer; or let people approve their own requests "
                "(LAKEHOUSE_SECOND_PERSON=false)."
            )
        return answer

    def _others(self, asked_by: str | None) -> list[Any]:
        """Return the assigned users without `asked_by`; empty if no user is assigned, or no other one."""
        return [user for user in self.assigned_users or () if asked_by not in (user["id"], user["name"])]


def approved_by(context: Context) -> str:
    """Return the name of the person who approved in the run's task `APPROVE`.

    Raises:
        AirflowFailException: no person did.
    """
    answer = context["ti"].xcom_pull(task_ids=APPROVE) or {}
    who = (answer.get("responded_by_user") or {}).get("name")
    if not who:
        raise AirflowFailException("Nobody approved this, and a person must. Trigger the DAG again.")
    return str(who)


def who_asked(context: Context) -> str | None:
    """Return the name of the person who triggered the run; None if no person did."""
    return getattr(context["dag_run"], "triggering_user_name", None)

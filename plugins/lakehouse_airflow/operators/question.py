"""A question to a person, whose text may quote values of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.standard.operators.hitl import ApprovalOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class QuestionOperator(ApprovalOperator):
    """Ask a person to approve something. The text is shown as it is: no part of it is a template.

    Airflow stores no NUL and a browser shows no other control character, so both are written as `\\x00`.

    :param question_of: the task that returns the `subject` and the `body`; by default they are given here.
    """

    template_fields: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]  # Airflow declares it for each instance

    def __init__(self, *, question_of: str = "", subject: str = "", **kwargs: Any) -> None:
        super().__init__(subject=subject, **kwargs)
        self.question_of = question_of

    def execute(self, context: Context) -> Any:
        """Ask those who may answer."""
        question = {"subject": self.subject, "body": self.body or ""}
        if self.question_of:
            question = context["ti"].xcom_pull(task_ids=self.question_of)
        self.subject, self.body = _visible(question["subject"]), _visible(question["body"])
        return super().execute(context)


def _visible(text: str) -> str:
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode() for each in text
    )

"""A question to a person, whose text may quote values of rows."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

from millrace.clock import utc_now
from millrace.contracts.visible_text import visible

if TYPE_CHECKING:
    from airflow.sdk import Context


_UNTIL = "answer_until"
"""The XCom with the end of a question's time-out."""


class Question(NamedTuple):
    """What a person is asked, as Markdown."""

    subject: str
    body: str


def quoted(text: str) -> str:
    r"""Return text of others as Markdown that shows it as it is, line by line: no heading, no link, no picture.

    >>> quoted("# Approved\n![a`b](https://example.com)")
    '`# Approved`\n\n`` ![a`b](https://example.com) ``'
    """
    return "\n\n".join(_code(line) for line in visible(text).split("\n") if line.strip()) or "` `"


def remarked(body: str, remark: str) -> str:
    """Return the body of a question with a remark below it."""
    return f"{body}\n\n{remark}"


def _code(line: str) -> str:
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}"


class QuestionOperator(ApprovalOperator):
    """Ask a person to approve something. The text is shown as it is: no part of it is a template.

    The question is `subject` and `body`, unless a subclass finds out in the run what there is to ask. Airflow takes
    answers until its scheduler looks for time-outs the next time; here an answer after the time-out counts for nothing.
    """

    template_fields: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]  # Airflow declares it for each instance

    def __init__(self, *, subject: str = "", **kwargs: Any) -> None:
        super().__init__(subject=subject, **kwargs)

    def question(self, context: Context) -> Question | None:
        """Return what to ask; None if nobody need be asked."""
        return Question(self.subject, self.body or "")

    def remark(self, context: Context) -> str:
        """Return what to say besides the question; empty for nothing."""
        return ""

    def execute(self, context: Context) -> Any:
        """Ask those who may answer."""
        question = self.question(context)
        if question is None:
            self.log.info("Nobody is asked.")
            return None
        self.subject, self.body = map(visible, question)
        if remark := self.remark(context):
            self.body = remarked(self.body, remark)
        if self.response_timeout:
            context["ti"].xcom_push(_UNTIL, (utc_now() + self.response_timeout).isoformat())
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Take the answer of a person, or the default after the time-out.

        Raises:
            AirflowFailException: a person answered after the time-out.
            HITLTriggerEventError, HITLTimeoutError: as `ApprovalOperator`.
        """
        if self.response_timeout and (person := event.get("responded_by_user")):
            ti = context["ti"]
            until = ti.xcom_pull(self.task_id, key=_UNTIL, map_indexes=ti.map_index)
            if until and event["responded_at"] > datetime.fromisoformat(until):
                raise AirflowFailException(
                    f"{person['name']} answered after the time-out of {self.response_timeout}: that counts for nothing"
                    "\nClear this task to ask again."
                )
        return super().execute_complete(context, event)

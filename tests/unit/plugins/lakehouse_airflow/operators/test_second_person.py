"""Nobody may approve their own request, unless nobody else may answer or the installation allows it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from airflow.providers.standard.operators import hitl
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from lakehouse_airflow.alerts.approval import ApprovalAlert
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator

MakeRun = Callable[..., dict[str, Any]]
ANN, BOB = ({"id": name, "name": name} for name in ("ann", "bob"))


@pytest.fixture
def answered(run_of: MakeRun) -> Callable[..., Any]:
    """Answer the question of a run that ann triggered, as `who`."""

    def answer(who: str, option: str = "Approve", *may_answer: dict[str, str]) -> Any:
        task = SecondPersonApprovalOperator(task_id="approve", subject="?", assigned_users=list(may_answer) or None)
        context = {**run_of(run_type="manual"), "task": task}
        context["dag_run"].triggering_user_name = "ann"
        event = {"chosen_options": [option], "params_input": {}, "responded_by_user": {"id": who, "name": who}}
        return task.execute_complete(context, {**event, "responded_at": datetime(2013, 1, 1, tzinfo=UTC)})

    return answer


def test_the_approval_of_the_asker_fails_the_task_unless_nobody_else_may_answer_or_the_installation_allows_it(
    answered: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for may_answer in ((), (ANN, BOB)):
        with pytest.raises(AirflowFailException, match="ann asked for this, and may not approve it"):
            answered("ann", "Approve", *may_answer)
        assert answered("bob", "Approve", *may_answer)["chosen_options"] == ["Approve"]
    assert answered("ann", "Reject")["chosen_options"] == ["Reject"], "nobody is kept from withdrawing"
    assert answered("ann", "Approve", ANN)["chosen_options"] == ["Approve"]
    monkeypatch.setenv("LAKEHOUSE_SECOND_PERSON", "false")
    assert answered("ann")["chosen_options"] == ["Approve"]


@pytest.mark.parametrize(
    ("may_answer", "asked"), [((ANN, BOB), [BOB]), ((ANN,), [ANN]), ((), None)], ids=["two", "one", "all"]
)
def test_airflow_is_told_that_others_answer(
    run_of: MakeRun, monkeypatch: pytest.MonkeyPatch, may_answer: tuple[dict[str, str], ...], asked: Any
) -> None:
    detail: dict[str, Any] = {}
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **fields: detail.update(fields))
    task = SecondPersonApprovalOperator(task_id="approve", subject="?", assigned_users=list(may_answer) or None)
    context = {**run_of(run_type="manual"), "task": task}
    context["dag_run"].triggering_user_name = "ann"
    context["task_instance"] = type("TaskInstance", (), {"id": "1"})
    with pytest.raises(TaskAwaitingInput):
        task.execute(context)
    assert detail["assigned_users"] == asked


def test_people_are_told_of_the_question_and_it_is_asked_even_if_a_notifier_is_down(
    run_of: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Chat(BaseNotifier):
        template_fields = ("text",)
        told: ClassVar[list[str]] = []

        def __init__(self, *, is_down: bool = False) -> None:
            super().__init__()
            self.text, self.is_down = "{{ alert.text }}", is_down

        def notify(self, context: Any) -> None:
            if self.is_down:
                raise OSError("cannot reach https://chat.example/s3cret")
            self.told.append(self.text)

    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **_: None)
    notifier = ApprovalAlert([Chat(is_down=True), Chat()])
    task = SecondPersonApprovalOperator(task_id="approve", subject="Let {{ 7 }} pass?", notifiers=notifier)
    for _ in range(2):
        context = {**run_of(run_type="manual"), "task": task}
        context["dag_run"].triggering_user_name = "ann"
        context["params"]["table"] = "silver.orders"
        context["task_instance"] = type("TaskInstance", (), {"id": "1"})
        with pytest.raises(TaskAwaitingInput):
            task.execute(context)
    assert len(Chat.told) == 2
    lines = Chat.told[0].split("\n")
    assert lines[:2] == ["silver.orders: waits for an answer", "Let {{ 7 }} pass?"]
    assert lines[-1].endswith("/required_actions")

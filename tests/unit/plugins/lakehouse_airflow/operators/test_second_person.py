"""Nobody may approve their own request, unless nobody else may answer or the installation allows it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.providers.standard.operators import hitl
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

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


def test_the_approval_of_the_asker_fails_the_task_and_that_of_another_person_counts(
    answered: Callable[..., Any],
) -> None:
    for may_answer in ((), (ANN, BOB)):
        with pytest.raises(AirflowFailException, match="ann asked for this, and may not approve it"):
            answered("ann", "Approve", *may_answer)
        assert answered("bob", "Approve", *may_answer)["chosen_options"] == ["Approve"]
    assert answered("ann", "Reject")["chosen_options"] == ["Reject"], "nobody is kept from withdrawing"


def test_the_only_person_who_may_answer_may_approve(answered: Callable[..., Any]) -> None:
    assert answered("ann", "Approve", ANN)["chosen_options"] == ["Approve"]


def test_an_installation_may_do_without_a_second_person(
    answered: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
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

"""Who may approve what they asked for themselves: nobody, unless nobody else may or the installation says so."""

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
    """What comes of an answer of `who` to what ann asked for."""

    def answer(who: str, option: str = "Approve", *may_answer: dict[str, str]) -> Any:
        task = SecondPersonApprovalOperator(task_id="approve", subject="?", assigned_users=list(may_answer) or None)
        context = {**run_of(run_type="manual"), "task": task}
        context["dag_run"].triggering_user_name = "ann"
        said = {"chosen_options": [option], "params_input": {}, "responded_by_user": {"id": who, "name": who}}
        return task.execute_complete(context, {**said, "responded_at": datetime(2013, 1, 1, tzinfo=UTC)})

    return answer


def test_one_s_own_approval_fails_the_task_and_that_of_another_counts(answered: Callable[..., Any]) -> None:
    for may_answer in ((), (ANN, BOB)):
        with pytest.raises(AirflowFailException, match="ann asked for this, and may not approve it"):
            answered("ann", "Approve", *may_answer)
        assert answered("bob", "Approve", *may_answer)["chosen_options"] == ["Approve"]
    assert answered("ann", "Reject")["chosen_options"] == ["Reject"], "nobody is kept from withdrawing"


def test_who_alone_may_answer_may_approve(answered: Callable[..., Any]) -> None:
    assert answered("ann", "Approve", ANN)["chosen_options"] == ["Approve"]


def test_an_installation_may_do_without(answered: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_SECOND_PERSON", "false")
    assert answered("ann")["chosen_options"] == ["Approve"]


@pytest.mark.parametrize(
    ("may_answer", "asked"), [((ANN, BOB), [BOB]), ((ANN,), [ANN]), ((), None)], ids=["two", "one", "all"]
)
def test_airflow_is_told_that_others_answer(
    run_of: MakeRun, monkeypatch: pytest.MonkeyPatch, may_answer: tuple[dict[str, str], ...], asked: Any
) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **detail: told.update(detail))
    task = SecondPersonApprovalOperator(task_id="approve", subject="?", assigned_users=list(may_answer) or None)
    context = {**run_of(run_type="manual"), "task": task}
    context["dag_run"].triggering_user_name = "ann"
    context["task_instance"] = type("TaskInstance", (), {"id": "1"})
    with pytest.raises(TaskAwaitingInput):
        task.execute(context)
    assert told["assigned_users"] == asked

"""A person is asked about the deletes of one batch, and what they say is written down for that one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from include.control.ledger.deletes import DeleteRecords, Deletes
from include.paths import LakehousePaths
from lakehouse_airflow.operators.delete_approval import AllowDeletesOperator, AskedDeletesOperator
from tests.unit.plugins.lakehouse_airflow.operators.conftest import DAY, House

ANN = {"responded_by_user": {"id": "1", "name": "ann"}}
DELETES = Deletes(
    table="silver.orders",
    table_id="id",
    interval_start=DAY.start,
    source="bronze.orders",
    source_id="source",
    source_version=7,
    keys=480,
    of_keys=500,
    samples=("order_id=o1",),
    why="the full snapshot from 2013-01-05 00:00 lacks them",
)


@pytest.fixture
def records(house: House) -> DeleteRecords:
    """A run has stopped before some deletes."""
    records = DeleteRecords(LakehousePaths(house.root))
    records.record_asked(DELETES, "run")
    return records


@pytest.fixture
def asked(run_of: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The context of a run whose form says this."""

    def make(answer: dict[str, Any] | None = ANN, **said: Any) -> dict[str, Any]:
        context = run_of("manual__1", run_type="manual", left=answer)
        context["dag_run"].triggering_user_name = "bob"
        return {**context, "params": {"table": "silver.orders", "version": 7, "reason": "they are sold", **said}}

    return make


def allow(context: dict[str, Any]) -> None:
    AllowDeletesOperator(task_id="allow").execute(context)


@pytest.mark.usefixtures("records")
def test_the_question_says_how_many_go_why_and_for_which_batch(asked: Callable[..., dict[str, Any]]) -> None:
    question = AskedDeletesOperator(task_id="deletes").execute(asked())
    assert question["subject"] == "Delete 480 of 500 keys of silver.orders?"
    assert "Then clear the task that waits" in question["body"]
    for part in ("order_id=o1", "bronze.orders up to version 7", "says bob: **they are sold**", "**Reject**"):
        assert part in question["body"]


def test_what_is_approved_is_allowed_in_the_name_of_who_approved_it(
    records: DeleteRecords, asked: Callable[..., dict[str, Any]]
) -> None:
    allow(asked())
    assert records.allowed_deletes("silver.orders", "id", "source") == [DELETES]
    with pytest.raises(AirflowFailException, match="no run asks to delete anything"):
        allow(asked())


def test_nothing_else_is_allowed_and_nothing_without_a_person(
    records: DeleteRecords, asked: Callable[..., dict[str, Any]]
) -> None:
    with pytest.raises(AirflowFailException, match="Runs ask at version 7"):
        AskedDeletesOperator(task_id="deletes").execute(asked(version=8))
    with pytest.raises(AirflowFailException, match="Nobody approved this"):
        allow(asked({"responded_by_user": None}))
    assert records.allowed_deletes("silver.orders", "id", "source") == []

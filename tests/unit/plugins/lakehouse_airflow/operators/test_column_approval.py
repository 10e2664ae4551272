"""Who is asked about which columns, and how the answers are kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk.exceptions import AirflowSkipException
from deltalake import write_deltalake

from include.control.ledger.new_columns import ColumnState, NewColumns
from include.errors import BadInputError
from include.paths import LakehousePaths
from lakehouse_airflow.operators.column_approval import ColumnApprovalOperator, OpenQuestionsOperator
from tests.support.documents.specs import bronze_document, write_specs
from tests.unit.plugins.lakehouse_airflow.operators.conftest import House

MakeRun = Callable[..., dict[str, Any]]
ORDERS = "bronze.orders"
ASKED_RUN, OTHER_RUN = "asset_triggered__1", "asset_triggered__2"


@pytest.fixture
def columns(house: House) -> NewColumns:
    """Two new fields of a table that asks, and one of a table that does not."""
    asking = bronze_document(on_drift="evolve", evolve="ask")
    write_specs(house.folder / "tables", asking, bronze_document("bronze.other", on_drift="evolve"))
    columns = NewColumns(LakehousePaths(house.root))
    columns.record(ColumnState.PROPOSED, ORDERS, ["colour", "shop"], run_id="monday")
    columns.record(ColumnState.PROPOSED, "bronze.other", ["size"], run_id="monday")
    return columns


def asked(run_of: MakeRun, run_id: str, run_type: str = "asset_triggered") -> list[str]:
    questions = OpenQuestionsOperator(task_id="open").execute(run_of(run_id, run_type=run_type))
    assert {question["table"] for question in questions} <= {ORDERS}
    return [question["column"] for question in questions]


def response(option: str) -> dict[str, Any]:
    """What Airflow hands to the task when somebody has answered."""
    who = {"id": "1", "name": "ann"}
    said = {"chosen_options": [option], "params_input": {}, "responded_by_user": who}
    return {**said, "responded_at": datetime(2013, 1, 1, tzinfo=UTC), "timedout": False}


def test_each_new_column_is_asked_about_in_one_run(columns: NewColumns, run_of: MakeRun) -> None:
    assert asked(run_of, ASKED_RUN) == ["colour", "shop"]
    assert asked(run_of, ASKED_RUN) == ["colour", "shop"], "a task that is tried again asks again"
    assert asked(run_of, OTHER_RUN) == []
    assert {column.state for column in columns.of(ORDERS)} == {ColumnState.ASKED}


@pytest.mark.parametrize(("option", "state"), [("Approve", ColumnState.APPROVED), ("Reject", ColumnState.REFUSED)])
def test_either_answer_is_kept_with_who_gave_it(
    columns: NewColumns, run_of: MakeRun, option: str, state: ColumnState
) -> None:
    task = ColumnApprovalOperator(task_id="approve", table=ORDERS, column="colour", kept='2 rows, such as "red"')
    assert task.subject == "Make colour a column of bronze.orders?"
    assert '`_rescued`: 2 rows, such as "red".' in task.body
    task.execute_complete({**run_of(ASKED_RUN), "task": task}, response(option))
    told = next(column for column in columns.of(ORDERS) if column.name == "colour")
    assert (told.state, told.said_by, told.run_id) == (state, "ann", ASKED_RUN)
    assert asked(run_of, "manual__1", "manual") == ["shop"], "a run by hand asks about all that is open"


def test_a_question_says_how_many_rows_have_the_field_and_some_values(
    columns: NewColumns, run_of: MakeRun, house: House
) -> None:
    kept = pa.table({"_rescued": ['{"colour": "red"}', None, '{"colour": "red", "n": 1}', '{"colour": "blue"}']})
    write_deltalake(str(LakehousePaths(house.root).table(ORDERS)), kept)
    questions = OpenQuestionsOperator(task_id="open").execute(run_of(ASKED_RUN, run_type="asset_triggered"))
    assert {question["column"]: question["kept"] for question in questions} == {
        "colour": '3 rows, such as "red", "blue"',
        "shop": "0 rows",
    }


@pytest.mark.parametrize("option", ["Approve", "Reject"])
def test_a_refusal_withdraws_the_open_question_until_somebody_wants_it_asked_again(
    columns: NewColumns, run_of: MakeRun, option: str
) -> None:
    assert asked(run_of, ASKED_RUN) == ["colour", "shop"]
    columns.record(ColumnState.REFUSED, ORDERS, ["colour"], run_id="lakehouse columns", said_by="bob")
    task = ColumnApprovalOperator(task_id="approve", table=ORDERS, column="colour")
    with pytest.raises(AirflowSkipException, match=r"refused by bob .*, which withdrew this question"):
        task.execute_complete({**run_of(ASKED_RUN), "task": task}, response(option))
    assert [column.said_by for column in columns.of(ORDERS, ColumnState.REFUSED)] == ["bob"]
    assert asked(run_of, "manual__1", "manual") == ["shop"]
    columns.record(ColumnState.PROPOSED, ORDERS, ["colour"], run_id="lakehouse columns", said_by="bob")
    assert asked(run_of, "manual__2", "manual") == ["colour", "shop"]
    task.execute_complete({**run_of("manual__2"), "task": task}, response("Approve"))
    assert [column.name for column in columns.of(ORDERS, ColumnState.APPROVED)] == ["colour"]


def test_an_answer_about_what_is_no_name_of_a_column_is_not_kept(columns: NewColumns, run_of: MakeRun) -> None:
    task = ColumnApprovalOperator(task_id="approve", table=ORDERS, column="a` string) --")
    with pytest.raises(BadInputError, match=r"is no name of a column of bronze\.orders"):
        task.execute_complete({**run_of(ASKED_RUN), "task": task}, response("Approve"))
    assert "a` string) --" not in {column.name for column in columns.of(ORDERS)}

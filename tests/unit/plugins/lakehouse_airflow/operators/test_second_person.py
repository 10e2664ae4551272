"""Who is asked about columns and rebuilds, who may answer, and what is done after the answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from airflow.providers.standard.operators import hitl
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput
from deltalake import write_deltalake

from lakehouse_airflow.alerts.approval import ApprovalAlert
from lakehouse_airflow.assets import REBUILT_TABLE, table_asset
from lakehouse_airflow.operators.column_approval import ColumnApprovalOperator, OpenQuestionsOperator
from lakehouse_airflow.operators.question import QuestionOperator
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator
from lakehouse_airflow.operators.table_maintenance import TableMaintenanceOperator
from lakehouse_airflow.operators.table_rebuild import RebuildApprovalOperator, TableRebuildOperator
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.requests import RebuildRequest
from millrace.control.ledger.new_columns import ColumnState, NewColumns
from millrace.errors import BadInputError
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_document, silver_spec, write_specs
from tests.support.ledger.delta_tables import day, load_batch
from tests.support.ledger.small_lake import commit_batch
from tests.unit.plugins.lakehouse_airflow.operators.conftest import DAY, House, Record

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


def test_values_of_rows_in_a_question_are_no_template_and_their_control_characters_are_shown(
    run_of: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    detail: dict[str, Any] = {}
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **fields: detail.update(fields))
    value = "{{ 6 * 7 }} {{ \x00 \x1b[31m é"
    tasks = [
        ColumnApprovalOperator(task_id="approve", table=ORDERS, column="{{ 1 }}", kept=value),
        SecondPersonApprovalOperator(task_id="approve", subject=f"Let {value} pass?", body=value),
    ]
    for task in tasks:
        context = {
            **run_of(
                run_type="manual",
            ),
            "task": task,
        }
        context["task_instance"] = type("TaskInstance", (), {"id": "1"})
        task.render_template_fields(context)
        with pytest.raises(TaskAwaitingInput):
            task.execute(context)
        assert "{{ 6 * 7 }} {{ \\x00 \\x1b[31m é" in detail["body"]
        assert "{{" in detail["subject"]


@pytest.mark.parametrize("kind", [SecondPersonApprovalOperator, ColumnApprovalOperator])
def test_an_answer_after_the_time_out_counts_for_nothing(
    house: House, run_of: MakeRun, monkeypatch: pytest.MonkeyPatch, kind: type[QuestionOperator]
) -> None:
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **_: None)
    left: dict[str, str] = {}
    of_kind = {"table": ORDERS, "column": "colour"} if kind is ColumnApprovalOperator else {"subject": "?"}
    task = kind(task_id="approve", response_timeout=timedelta(hours=1), **of_kind)
    context = {**run_of(run_type="manual"), "task": task, "task_instance": SimpleNamespace(id="1")}
    context["ti"] = SimpleNamespace(
        map_index=-1, xcom_push=left.__setitem__, xcom_pull=lambda _, key, **__: left.get(key)
    )
    with pytest.raises(TaskAwaitingInput):
        task.execute(context)
    event = {"chosen_options": ["Approve"], "params_input": {}, "responded_by_user": {"id": "bob", "name": "bob"}}
    asked_at = datetime.now(UTC)
    with pytest.raises(AirflowFailException, match=r"bob answered after the time-out of 1:00:00: .*nothing\nClear"):
        task.execute_complete(context, {**event, "responded_at": asked_at + timedelta(minutes=61)})
    assert NewColumns(LakehousePaths(house.root)).of(ORDERS, ColumnState.APPROVED) == []
    answer = task.execute_complete(context, {**event, "responded_at": asked_at + timedelta(minutes=59)})
    assert answer["chosen_options"] == ["Approve"]


@pytest.mark.parametrize(
    ("may_answer", "second_person", "asked", "is_said"),
    [
        ((ANN, BOB), "true", [BOB], True),
        ((ANN,), "true", [ANN], False),
        ((), "true", None, True),
        ((), "false", None, False),
    ],
    ids=["two", "one", "all", "alone"],
)
def test_airflow_is_told_that_others_answer_and_the_question_says_so(
    run_of: MakeRun,
    monkeypatch: pytest.MonkeyPatch,
    may_answer: tuple[dict[str, str], ...],
    second_person: str,
    asked: Any,
    is_said: bool,
) -> None:
    monkeypatch.setenv("LAKEHOUSE_SECOND_PERSON", second_person)
    detail: dict[str, Any] = {}
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **fields: detail.update(fields))
    task = SecondPersonApprovalOperator(task_id="approve", subject="?", assigned_users=list(may_answer) or None)
    context = {**run_of(run_type="manual"), "task": task}
    context["dag_run"].triggering_user_name = "ann"
    context["task_instance"] = type("TaskInstance", (), {"id": "1"})
    with pytest.raises(TaskAwaitingInput):
        task.execute(context)
    assert detail["assigned_users"] == asked
    assert ("`ann` asked for this and may reject it, but **not approve it**" in detail["body"]) is is_said


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
    assert '`_rescued`: `2 rows, such as "red"`.' in task.body
    task.execute_complete({**run_of(ASKED_RUN), "task": task}, response(option))
    told = next(column for column in columns.of(ORDERS) if column.name == "colour")
    assert (told.state, told.said_by, told.run_id) == (state, "ann", ASKED_RUN)
    assert asked(run_of, "manual__1", "manual") == ["shop"], "a run by hand asks about all that is open"


@pytest.mark.parametrize(
    ("setting", "classification", "some"),
    [
        ("log_readers", "internal", ', such as "red", "blue"'),
        ("log_readers", "restricted", ""),
        ("editors", "internal", ""),
    ],
)
def test_a_question_says_how_many_rows_have_the_field_and_some_values_where_people_may_see_them(
    columns: NewColumns,
    run_of: MakeRun,
    house: House,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    classification: str,
    some: str,
) -> None:
    monkeypatch.setenv("LAKEHOUSE_ROW_VALUES_FOR", setting)
    asking = bronze_document(on_drift="evolve", evolve="ask", classification=classification)
    write_specs(house.folder / "tables", asking)
    kept = pa.table({"_rescued": ['{"colour": "red"}', None, '{"colour": "red", "n": 1}', '{"colour": "blue"}']})
    write_deltalake(str(LakehousePaths(house.root).table(ORDERS)), kept)
    questions = OpenQuestionsOperator(task_id="open").execute(run_of(ASKED_RUN, run_type="asset_triggered"))
    assert {question["column"]: question["kept"] for question in questions} == {
        "colour": f"3 rows{some}",
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


SILVER, REVENUE = "silver.orders", "gold.revenue"
FORM = {
    "table": SILVER, "downstream": True, "allow_deletes": False, "allow_missing": False, "allow_refused": False,
    "why": "other keys",
}  # fmt: skip
SAID = 'report(Outcome.NO_OP, "would rebuild silver.orders")'
DONE = f'report(Outcome.COMMITTED, "rebuilt", version=4, details={{"tables": {{"{SILVER}": 4, "{REVENUE}": 7}}}})'


@pytest.fixture
def rebuilding(house: House, run_of: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """The context of a run that ann has triggered with the form."""
    told: list[tuple[Any, Any]] = []
    events = {REBUILT_TABLE: SimpleNamespace(add=lambda asset, extra: told.append((asset, extra)))}
    context = run_of(run_type="manual", logical_date=None, start=None, end=None, events=events)
    context["dag_run"].triggering_user_name = "ann"
    return {**context, "params": FORM, "told": told}


def task_of(*, is_dry_run: bool) -> TableRebuildOperator:
    task = TableRebuildOperator(task_id="rebuild", is_dry_run=is_dry_run)
    assert task.table == "{{ params.table }}"
    task.table = SILVER
    return task


@pytest.mark.usefixtures("warm_server")
def test_a_dry_run_gives_what_a_person_is_asked(house: House, rebuilding: dict[str, Any]) -> None:
    house.job(SAID, Job.TABLE_REBUILD)
    task = task_of(is_dry_run=True)
    rebuilding["ti"].xcom_pull = lambda task_ids: {"dry_run": task.execute(rebuilding)}[task_ids]
    question = RebuildApprovalOperator(task_id="approve").question(rebuilding)
    args = JobArgs.from_argv(task.application_args)
    assert (args.dry_run, args.table, task.job) == (True, SILVER, Job.TABLE_REBUILD)
    assert RebuildRequest.load(args.request) == RebuildRequest(downstream=True, said_by="ann", why="other keys")
    assert question.subject == "Rebuild silver.orders?"
    assert "would rebuild silver.orders" in question.body
    assert "though its gate has refused it" not in question.body
    allowing = {**rebuilding, "params": {**FORM, "allow_refused": True}}
    assert "though its gate has refused it" in RebuildApprovalOperator(task_id="approve").question(allowing).body
    assert "ann: `other keys`" in question.body
    assert rebuilding["told"] == []


@pytest.mark.usefixtures("warm_server")
def test_each_table_that_was_switched_is_told_of(house: House, rebuilding: dict[str, Any], record: Record) -> None:
    house.job(DONE, Job.TABLE_REBUILD)
    for _ in range(4):
        load_batch(house.root, silver_spec())
    left = {"dry_run": {"plan": "would rebuild silver.orders"}}
    rebuilding["ti"].xcom_pull = lambda task_ids: left[task_ids]
    record(rebuilding, RebuildApprovalOperator(task_id="approve"), by="eve")
    task = task_of(is_dry_run=False)
    task.execute(rebuilding)
    args = JobArgs.from_argv(task.application_args)
    assert args.dry_run is False
    request = RebuildRequest.load(args.request)
    assert (request.said_by, request.plan) == ("ann, approved by eve", "would rebuild silver.orders")
    assert [(asset, extra["version"]) for asset, extra in rebuilding["told"]] == [
        (table_asset(SILVER), 4),
        (table_asset(REVENUE), 7),
    ]
    assert rebuilding["told"][0][1]["summary"] == f"{SILVER} version 4 for 2013-01-04: rebuilt"
    assert rebuilding["told"][0][1]["interval_end"] == day(4).end.isoformat(), "a DAG that it starts has an interval"


def maintenance_task(job: Job, **given: bool) -> TableMaintenanceOperator:
    return TableMaintenanceOperator(task_id="orders", job=job, table="bronze.orders", **given)


@pytest.mark.usefixtures("warm_server")
def test_vacuum_is_a_dry_run_unless_the_form_or_a_hand_written_dag_says_otherwise(
    house: House, run_of: MakeRun
) -> None:
    house.deliver()
    commit_batch(house.root, house.landing, house.spec, DAY, "a run")
    cases: list[tuple[Job, dict[str, bool], dict[str, bool], bool]] = [
        (Job.TABLE_VACUUM, {}, {}, True),
        (Job.TABLE_VACUUM, {"vacuum_dry_run": False}, {}, False),
        (Job.TABLE_OPTIMIZE, {"vacuum_dry_run": True}, {}, False),
        (Job.TABLE_VACUUM, {}, {"is_dry_run": False}, False),
        (Job.TABLE_OPTIMIZE, {}, {"is_dry_run": True}, True),
    ]
    for job, params, given, dry_run in cases:
        house.job("report(Outcome.NO_OP, 'nothing to do')", job)
        task = maintenance_task(job, **given)
        task.execute({**run_of(run_type="manual", logical_date=None, start=None, end=None), "params": params})
        assert JobArgs.from_argv(task.application_args).dry_run is dry_run, (job, params, given)


def test_a_table_that_does_not_exist_yet_starts_no_spark(house: House, run_of: MakeRun) -> None:
    result = maintenance_task(Job.TABLE_OPTIMIZE).execute(run_of())
    assert result["message"] == "bronze.orders does not exist yet"

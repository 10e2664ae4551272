"""A person is asked about one refused version, or the deletes of one batch; the answer is about that one alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from deltalake import CommitProperties, DeltaTable

from lakehouse_airflow.assets import OVERRIDDEN_TABLE, table_asset
from lakehouse_airflow.operators import gate_override, quality_gate
from lakehouse_airflow.operators.delete_approval import AllowDeletesOperator, DeleteApprovalOperator
from lakehouse_airflow.operators.gate_override import (
    GateOverrideOperator,
    OverrideApprovalOperator,
    may_be_overridden,
    way_out,
)
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from lakehouse_airflow.ui.links import FAILED_KEY
from millrace.contracts.job.task_result import TaskResult
from millrace.control.gates.gates import Gates
from millrace.control.ledger.deletes import DeleteRecords, Deletes
from millrace.control.log.batch import BatchSources, Stream, Winner
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import intent_of
from tests.support.ledger.small_lake import commit_batch, judge
from tests.unit.plugins.lakehouse_airflow.operators.conftest import DAY, House, Record

MakeRun = Callable[..., dict[str, Any]]
ORDERS = "bronze.orders"
RUN, OVERRIDE_RUN = "scheduled__2013-01-06T00:00:00+00:00", "manual__2013-01-07T09:00:00+00:00"


@pytest.fixture
def refused(house: House) -> Winner:
    """Version 1 passed; version 2, which the run RUN made, was refused."""
    for name, passed in (("a.json", True), ("b.json", False)):
        house.deliver(name)
        winner = commit_batch(house.root, house.landing, house.spec, DAY, RUN)
        judge(house.root, house.spec, winner, passed=passed)
    return winner


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The versions that were announced before, as Airflow's database would say."""
    versions: set[int] = set()
    for module in (gate_override, quality_gate):
        monkeypatch.setattr(module, "is_announced", lambda context, asset, version, **_: version in versions)
    return versions


@pytest.fixture
def asked(run_of: MakeRun) -> Callable[..., dict[str, Any]]:
    """Return the context of a run with these values in its form."""
    added: list[tuple[Any, Any]] = []
    events = {OVERRIDDEN_TABLE: SimpleNamespace(add=lambda asset, extra: added.append((asset, extra)))}

    def make(run_id: str = OVERRIDE_RUN, **values: Any) -> dict[str, Any]:
        # As whoever may edit XComs could have it.
        forged = {"responded_by_user": {"id": "1", "name": "eve"}, "chosen_options": ["Approve"]}
        context = run_of(run_id, run_type="manual", left=forged, events=events)
        context["dag_run"].triggering_user_name = "bob"
        form = {"table": ORDERS, "version": 2, "reason": "a holiday", **values}
        return {**context, "params": form, "events": added}

    return make


OVERRIDE, DELETE = OverrideApprovalOperator(task_id="approve"), DeleteApprovalOperator(task_id="approve")


def override(context: dict[str, Any]) -> dict[str, Any]:
    return GateOverrideOperator(task_id="override").execute(context)


@pytest.mark.usefixtures("refused")
def test_the_question_says_version_rules_reason_and_what_an_answer_does(asked: Callable[..., dict[str, Any]]) -> None:
    question = OVERRIDE.question(asked())
    assert question.subject == "Let version 2 of bronze.orders pass, though its gate refused it?"
    rule = "`expect_table_row_count_to_be_between(min_value=1)`: `no empty days`"
    for part in (rule, "says bob: `a holiday`", "**Reject**"):
        assert part in question.body
    assert "[bronze.orders](/assets?name_pattern=bronze.orders)" in question.body
    assert "Then clear the task that waits" in question.body
    body = OVERRIDE.question(asked(task="shop/manual__1/bronze.orders_gate")).body
    assert "[the task that waits](/dags/shop/runs/manual__1/tasks/bronze.orders_gate)" in body
    assert "[Data Docs with samples](/lakehouse/data-docs/shop/manual__1/bronze.orders)" in body
    assert "Then the task that waits runs again" in body
    for form, reason in (({"version": 1}, "passed its gate"), ({"version": 9}, "has no version 9")):
        with pytest.raises(AirflowFailException, match=reason):
            OVERRIDE.question(asked(**form))


@pytest.mark.usefixtures("announced", "refused")
def test_an_approval_is_for_no_version_of_another_table_at_the_same_place(
    house: House, asked: Callable[..., dict[str, Any]], record: Record
) -> None:
    record(asked(), OVERRIDE)
    shutil.rmtree(LakehousePaths(house.root).table(ORDERS))
    for name, passed in (("c.json", True), ("d.json", False)):
        house.deliver(name)
        judge(house.root, house.spec, commit_batch(house.root, house.landing, house.spec, DAY, RUN), passed=passed)
    with pytest.raises(AirflowFailException, match="something else"):
        override(asked())


@pytest.mark.usefixtures("announced")
def test_an_approved_version_is_certified_in_the_name_of_who_approved_it_and_announced(
    house: House, asked: Callable[..., dict[str, Any]], record: Record, refused: Winner
) -> None:
    gates = Gates(LakehousePaths(house.root))
    with pytest.raises(AirflowFailException, match="Nobody approved this"):
        override(asked())
    for by, option, reason in (
        (None, "Approve", "Nobody approved this"),
        ("ann", "Reject", "Nobody approved this"),
        ("bob", "Approve", "bob asked for this, and may not approve it"),
    ):
        context = record(asked(), OVERRIDE, by, option)
        with pytest.raises(AirflowFailException, match=reason):
            override(context)
        left = context["ti"].pushed[FAILED_KEY]
        assert (left["table"], reason in left["message"]) == (ORDERS, True), "the page of the run says why"
    record(asked(reason="another one"), OVERRIDE)
    with pytest.raises(AirflowFailException, match="ann approved something else than what there is to do now"):
        override(asked())
    assert gates.certified(ORDERS) == 1
    context = record(asked(), OVERRIDE)
    override(context)
    assert gates.certified(ORDERS) == refused.version == 2
    refusal = gates.override_in_force(ORDERS)
    assert (refusal.override.by, refusal.override.reason, refusal.override.run_id) == ("ann", "a holiday", OVERRIDE_RUN)
    [(asset, extra)] = context["events"]
    assert asset == table_asset(ORDERS)
    assert extra == {
        "summary": f"bronze.orders version 2 for 2013-01-05: {refusal.override}",
        "interval_start": "2013-01-05T00:00:00+00:00",
        "interval_end": "2013-01-06T00:00:00+00:00",
        "batch_seq": 2,
        "run_id": RUN,
        "version": 2,
        "overridden": str(refusal.override),
    }


@pytest.mark.usefixtures("refused")
def test_a_task_that_died_after_it_recorded_the_override_announces_it_when_retried(
    house: House, asked: Callable[..., dict[str, Any]], record: Record, announced: set[int]
) -> None:
    override(record(asked(), OVERRIDE))
    context = asked()
    override(context)
    assert len(context["events"]) == 2, "the first try ended before its event was made"
    announced.add(2)
    override(context)
    assert len(context["events"]) == 2
    results = Gates(LakehousePaths(house.root)).results(ORDERS)
    assert sum(1 for entry in results if entry.result.override) == 1
    with pytest.raises(AirflowFailException, match=r"version 2 was certified by hand by ann at .*: a holiday"):
        override(asked(run_id="manual__2"))


@pytest.mark.usefixtures("announced")
def test_a_version_that_was_overtaken_while_the_question_stood_open_passes_unless_readers_use_a_later_one(
    house: House, asked: Callable[..., dict[str, Any]], record: Record, refused: Winner
) -> None:
    record(asked(), OVERRIDE)
    house.deliver("c.json")
    later = commit_batch(house.root, house.landing, house.spec, DAY, "the next run")
    judge(house.root, house.spec, later, passed=False)
    with pytest.raises(AirflowFailException, match="version 3 came after 2"):
        OVERRIDE.question(asked())
    override(asked())
    assert Gates(LakehousePaths(house.root)).certified(ORDERS) == refused.version
    record(asked("manual__3", version=later.version), OVERRIDE)
    house.deliver("d.json")
    latest = commit_batch(house.root, house.landing, house.spec, DAY, "the run after it")
    judge(house.root, house.spec, latest)
    with pytest.raises(AirflowFailException, match="readers use version 4, and never go back to 3"):
        override(asked("manual__3", version=later.version))
    assert Gates(LakehousePaths(house.root)).certified(ORDERS) == latest.version


@pytest.mark.usefixtures("announced")
def test_the_cleared_gate_passes_and_says_by_whose_word(
    run_of: MakeRun, asked: Callable[..., dict[str, Any]], record: Record, refused: Winner
) -> None:
    left = TaskResult(outcome="committed", message="", table=ORDERS, version=refused.version).to_xcom()
    asset = table_asset(ORDERS)
    gate = QualityGateOperator(task_id="gate", table=ORDERS, outlets=[asset])
    context = run_of(RUN, left=left, events={asset: SimpleNamespace(extra={})})
    with pytest.raises(AirflowFailException) as raised:
        gate.execute(context)
    first, *_ = str(raised.value).splitlines()
    assert first.startswith("bronze.orders version 2 refused: ")
    assert "the link Gate override of this task opens the form of the DAG gate_override" in first
    assert "lakehouse gate override bronze.orders --version 2 --reason ..." in first
    override(record(asked(), OVERRIDE))
    result = gate.execute(context)
    assert (result["certified_version"], gate.outlets) == (2, [asset])
    assert result["message"].startswith("version 2 certified by hand by ann at ")


def test_no_way_out_is_a_command_that_would_be_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_SECOND_PERSON", "true")
    assert way_out(ORDERS, 2).endswith("opens the form of the DAG gate_override.")
    of_other_tool = way_out(ORDERS, 2, specs="specs/partners")
    assert "`LAKEHOUSE_TABLES=specs/partners LAKEHOUSE_SECOND_PERSON=false lakehouse gate override" in of_other_tool


def test_a_version_whose_predecessor_was_restored_is_to_be_run_again_and_not_to_be_overridden(
    house: House, refused: Winner
) -> None:
    assert "lakehouse gate override bronze.orders --version 2" in way_out(ORDERS, 2)
    assert may_be_overridden(ORDERS, 2)
    assert not may_be_overridden(ORDERS, 2, specs="specs/partners"), "the form does not offer the table"
    restoring = BatchSources().at_same_position(restores=1, undoes=[refused.token])
    intent = intent_of(refused.intent.table_id, 3, stream=Stream(ORDERS), sources=restoring)
    properties = CommitProperties(custom_metadata={"userMetadata": intent.user_metadata()})
    DeltaTable(str(LakehousePaths(house.root).table(ORDERS))).restore(1, commit_properties=properties)
    assert way_out(ORDERS, 2).startswith("An earlier version was restored: fix data or rules, then clear the task")
    assert not may_be_overridden(ORDERS, 2)


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


FORM_OF_DELETES = {"table": "silver.orders", "version": 7, "reason": "they are sold"}


@pytest.fixture
def records(house: House) -> DeleteRecords:
    """A run has stopped before some deletes."""
    records = DeleteRecords(LakehousePaths(house.root))
    records.record_asked(DELETES, "run")
    return records


def allow(context: dict[str, Any]) -> None:
    AllowDeletesOperator(task_id="allow").execute(context)


@pytest.mark.usefixtures("records")
def test_the_question_says_how_many_go_why_and_for_which_batch(
    asked: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = DELETE.question(asked(**FORM_OF_DELETES))
    assert question.subject == "Delete 480 of 500 keys of silver.orders?"
    assert "Then clear the task that waits" in question.body
    assert "order_id=o1" not in question.body
    monkeypatch.setenv("LAKEHOUSE_ROW_VALUES_FOR", "log_readers")
    assert "order_id=o1" in DELETE.question(asked(**FORM_OF_DELETES)).body
    for part in (
        "bronze.orders up to version 7",
        "says bob: `they are sold`",
        "**Reject**",
    ):
        assert part in question.body


def test_what_is_approved_is_allowed_in_the_name_of_who_approved_it(
    records: DeleteRecords, asked: Callable[..., dict[str, Any]], record: Record
) -> None:
    record(asked(**FORM_OF_DELETES), DELETE)
    other = replace(DELETES, interval_start=DELETES.interval_start + timedelta(days=1), keys=499)
    records.record_asked(other, "another run")
    with pytest.raises(AirflowFailException, match="ann approved something else"):
        allow(asked(**FORM_OF_DELETES))
    records.record_allowed(other, said_by="cat", reason="", run_id="another approval")
    allow(asked(**FORM_OF_DELETES))
    assert records.allowed_deletes("silver.orders", "id", "source") == [other, DELETES]
    with pytest.raises(AirflowFailException, match="no run asks to delete anything"):
        allow(asked(**FORM_OF_DELETES))


def test_nothing_else_is_allowed_and_nothing_without_a_person(
    records: DeleteRecords, asked: Callable[..., dict[str, Any]], record: Record
) -> None:
    with pytest.raises(AirflowFailException, match="Runs ask at version 7"):
        DELETE.question(asked(**{**FORM_OF_DELETES, "version": 8}))
    with pytest.raises(AirflowFailException, match="Nobody approved this"):
        allow(record(asked(**FORM_OF_DELETES), DELETE, by=None))
    assert records.allowed_deletes("silver.orders", "id", "source") == []

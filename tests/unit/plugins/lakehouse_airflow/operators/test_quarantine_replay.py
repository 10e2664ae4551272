"""A replay asks its job for what the form says, and starts no Spark where no row waits."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators import hitl
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from lakehouse_airflow.assets import REPLAYED_TABLE, table_asset
from lakehouse_airflow.operators.quarantine_replay import FixApprovalOperator, QuarantineReplayOperator
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.column_fix import SetValue
from millrace.contracts.job.findings import INVALID_VALUE
from millrace.contracts.job.requests import QuarantineRequest
from millrace.contracts.row_status import RowStatus
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.log.batch import FileFact
from millrace.control.quarantine.rows import count_by_status
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import day
from tests.support.ledger.quarantine_rows import FIRST, quarantine, refused
from tests.unit.plugins.lakehouse_airflow.operators.conftest import House, Record

MakeRun = Callable[..., dict[str, Any]]
ORDERS = "bronze.orders"
FORM = {
    "table": ORDERS, "action": "replay rows", "file": None,
    "ids": None, "reason": None, "all_rows": False, "set_column": None, "set_how": None,
    "set_value": None, "set_by": None, "set_values": None, "why": None, "dry_run": True,
}  # fmt: skip
DONE = """
args.report.with_suffix(".asked").write_bytes(args.request.read_bytes())
report(Outcome.COMMITTED, "replayed", version=4, certified_version=4, certified_moved=True, table_rows=9,
       rows=RowCounts(read=1, applied=1, inserted=1))
"""


@pytest.fixture
def asked(house: House, run_of: MakeRun) -> Callable[..., dict[str, Any]]:
    """Return the context of a run with these values in its form; two rows wait in quarantine."""
    quarantine(LakehousePaths(house.root), ORDERS, refused(1, "too low", of_day=2), refused(2, "no key", of_day=3))
    added: list[tuple[Any, Any]] = []
    events = {REPLAYED_TABLE: SimpleNamespace(add=lambda asset, extra: added.append((asset, extra)))}

    def make(**values: Any) -> dict[str, Any]:
        context = run_of(run_type="manual", logical_date=None, start=None, end=None, events=events)
        context["dag_run"].triggering_user_name = "ann"
        return {**context, "params": {**FORM, **values}, "events": added}

    return make


def replay() -> QuarantineReplayOperator:
    task = QuarantineReplayOperator(task_id="replay")
    assert task.table == "{{ params.table }}"
    task.table = ORDERS
    return task


def saved_request(task: QuarantineReplayOperator) -> tuple[JobArgs, QuarantineRequest]:
    args = JobArgs.from_argv(task.application_args)
    return args, QuarantineRequest.load(args.report.with_suffix(".asked"))


@pytest.mark.usefixtures("warm_server")
def test_the_job_is_asked_for_what_the_form_says(
    house: House, asked: Callable[..., dict[str, Any]], record: Record
) -> None:
    house.job(DONE, Job.QUARANTINE_REPLAY)
    task = replay()
    fix = {"set_column": " amount ", "set_how": "set", "set_value": "reflect('java.lang.System', 'getenv', 'KEY')"}
    form = {"ids": "r1, r2", **fix, "why": "so", "dry_run": False}
    with pytest.raises(AirflowFailException, match="Nobody approved this"):
        replay().execute(asked(**form))
    record(asked(**{**form, "ids": "r1"}), FixApprovalOperator(task_id="approve"), by="bob")
    with pytest.raises(AirflowFailException, match="bob approved something else"):
        replay().execute(asked(**form))
    context = record(asked(**form), FixApprovalOperator(task_id="approve"), by="bob")
    assert task.execute(context)["rows"] == {"read": 1, "applied": 1, "inserted": 1}
    args, request = saved_request(task)
    assert not args.request.exists(), "somebody has typed values"
    assert (request.rows.ids, request.why, request.said_by) == (("r2", "r1"), "so", "ann, approved by bob")
    assert request.fixes == {"amount": SetValue(value=fix["set_value"])}, "a literal, whatever it says"
    assert request.assign == {}, "a form has no expressions"
    assert (args.dry_run, args.table, args.interval.start) == (False, ORDERS, refused(1, of_day=3)["_interval_start"])
    ((asset, extra),) = context["events"]
    assert (asset, extra["version"]) == (table_asset(ORDERS), 4)
    assert FIRST.isoformat() < extra["interval_start"] < extra["interval_end"]


@pytest.mark.usefixtures("warm_server")
def test_a_version_that_the_gate_refuses_fails_the_task(house: House, asked: Callable[..., dict[str, Any]]) -> None:
    house.job(
        "from millrace.contracts.job.report import CheckResult\n"
        "report(Outcome.COMMITTED, 'replayed; refused by its gate', version=4,"
        " checks=(CheckResult(rule='r', action='fail', passed=False),))",
        Job.QUARANTINE_REPLAY,
    )
    with pytest.raises(AirflowFailException, match="refused by its gate"):
        replay().execute(asked(all_rows=True, dry_run=False))


@pytest.mark.usefixtures("warm_server")
def test_a_dry_run_reports_the_action_of_each_row_and_none_of_its_values(
    house: House, asked: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    house.job(
        "report(Outcome.NO_OP, 'looked at', details={'rows': [{'id': 'r1', 'fate': 'applied', 'reasons': [],"
        " 'received': '{\\\"card\\\": \\\"4111\\\"}'}]})",
        Job.QUARANTINE_REPLAY,
    )
    task, context = replay(), asked(all_rows=True)
    task.execute(context)
    assert JobArgs.from_argv(task.application_args).dry_run is True, "until told otherwise"
    assert context["events"] == []
    said = capsys.readouterr().out
    assert "r1 would be applied: it passes" in said
    assert "4111" not in said
    house.job("raise SystemExit('must not run')", Job.QUARANTINE_REPLAY)
    result = replay().execute(asked(reason="no such reason"))
    assert result["message"] == "bronze.orders: the form selects no row that waits in quarantine"


@pytest.mark.usefixtures("warm_server")
def test_a_row_is_found_by_its_reason_but_not_by_the_value_in_it(
    house: House, asked: Callable[..., dict[str, Any]]
) -> None:
    quarantine(LakehousePaths(house.root), ORDERS, refused(3, f"{INVALID_VALUE}: amount is no int: 4111"))
    house.job("raise SystemExit('must not run')", Job.QUARANTINE_REPLAY)
    result = replay().execute(asked(reason="4111"))
    assert result["message"] == "bronze.orders: the form selects no row that waits in quarantine"
    house.job(DONE, Job.QUARANTINE_REPLAY)
    task = replay()
    task.execute(asked(reason="amount is no int", dry_run=False))
    assert saved_request(task)[1].rows.ids == ("r3",)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "Which rows"),
        ({"ids": "r1 r9"}, "has no row 'r9'"),
        ({"ids": "r"}, "'r' is the beginning of"),
        (
            {"ids": "r1", "set_column": "amount", "set_how": "set to null", "dry_run": False},
            "no connection 'airflow_api'",
        ),
        ({"all_rows": True, "set_column": "amount"}, "fill in both fields"),
        ({"all_rows": True, "set_value": "5"}, "fill in both fields"),
        (
            {"all_rows": True, "set_column": "amount", "set_how": "set"},
            "Fill it in, or choose set to null",
        ),
        ({"all_rows": True, "set_column": "amount", "set_how": "map"}, "map needs the field Map of values"),
        ({"all_rows": True, "set_column": "amount", "set_how": "trim", "set_value": "5"}, "trim does not accept"),
        ({"all_rows": True, "set_column": "amount", "set_how": "sql", "set_value": "5"}, "sql does not accept"),
        ({"all_rows": True, "action": "discard rows"}, "Why"),
        ({"ids": "r1", "action": "reopen rows"}, "r1 cannot be reopened: only a row that is discarded can"),
        ({"ids": "r1", "action": "discard rows", "why": "so", "set_column": "a", "set_how": "trim"}, "no column is"),
        ({"action": "give up a landing file", "file": "orders/a.json"}, "Why"),
        ({"action": "give up a landing file", "file": "orders/a.json", "why": "so"}, "has no landing file"),
    ],
)
def test_a_form_that_says_too_little_fails_with_what_to_fill_in(
    asked: Callable[..., dict[str, Any]], form: dict[str, Any], said: str
) -> None:
    with pytest.raises(AirflowFailException, match=said):
        replay().execute(asked(**form))


@pytest.mark.parametrize(
    ("form", "is_asked"),
    [
        ({"set_column": "amount", "set_how": "set", "set_value": "{{ var.value.x }}", "dry_run": False}, True),
        ({"set_column": "amount", "set_how": "set", "set_value": "5"}, False),
        ({"dry_run": False}, False),
    ],
    ids=["change", "dry run", "as they are"],
)
def test_a_second_person_is_asked_where_values_are_changed(
    asked: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, form: dict[str, Any], is_asked: bool
) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **detail: told.update(detail))
    task, context = FixApprovalOperator(task_id="approve"), asked(all_rows=True, why="the till", **form)
    context["task_instance"] = SimpleNamespace(id="1")
    with pytest.raises(TaskAwaitingInput) if is_asked else nullcontext():
        task.execute(context)
    assert bool(told) is is_asked
    if is_asked:
        assert told["subject"] == f"Change 2 quarantined rows of {ORDERS}, and replay?"
        assert "**ann** asks for: `amount set to '{{ var.value.x }}'`" in told["body"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"set_column": "amuont", "set_how": "set to null"}, "has no column 'amuont': did you mean 'amount'?"),
        ({"set_column": "day", "set_how": "copy", "set_value": "dya"}, "has no column 'dya': did you mean 'day'?"),
        ({"set_column": "_source_file", "set_how": "trim"}, "has no column '_source_file': known are order_id, "),
    ],
)
def test_nobody_is_asked_about_a_column_that_rows_do_not_have(
    asked: Callable[..., dict[str, Any]], form: dict[str, Any], said: str
) -> None:
    for task in (FixApprovalOperator(task_id="approve"), replay()):
        with pytest.raises(AirflowFailException, match=re.escape(said)):
            task.execute(asked(all_rows=True, dry_run=False, **form))


def test_nobody_is_asked_about_no_row(asked: Callable[..., dict[str, Any]]) -> None:
    form = {"reason": "no such reason", "set_column": "amount", "set_how": "set to null", "dry_run": False}
    assert FixApprovalOperator(task_id="approve").execute(asked(**form)) is None


def test_rows_are_discarded_and_reopened_with_the_name_and_the_reason_of_the_person(
    house: House, asked: Callable[..., dict[str, Any]]
) -> None:
    paths = LakehousePaths(house.root)
    form = {"ids": "r1", "why": "a test order"}
    dry = replay().execute(asked(action="discard rows", **form))
    assert dry["message"] == "1 row of bronze.orders would be discarded"
    assert count_by_status(StoredRows(ORDERS, paths)) == {RowStatus.OPEN: 2}
    context = asked(action="discard rows", dry_run=False, **form)
    replay().execute(context)
    assert count_by_status(StoredRows(ORDERS, paths)) == {RowStatus.OPEN: 1, RowStatus.DISCARDED: 1}
    assert TableStates(paths).read(ORDERS, WaitingRows).rows == 1
    [event] = StoredRows(ORDERS, paths).events_of("r1")
    assert (event["said_by"], event["why"], event["run_id"]) == ("ann", "a test order", context["run_id"])
    again = replay().execute(asked(action="reopen rows", all_rows=True, dry_run=False))
    assert again["message"] == "1 row of bronze.orders reopened"
    assert count_by_status(StoredRows(ORDERS, paths)) == {RowStatus.OPEN: 2}


def test_a_failed_file_is_given_up_with_the_name_and_the_reason_of_the_person(
    house: House, asked: Callable[..., dict[str, Any]]
) -> None:
    ledger, context = (
        Ledger(LakehousePaths(house.root)),
        asked(action="give up a landing file", file="orders/a.gz", why="the shop was closed", dry_run=False),
    )
    target = table_id(LakehousePaths(house.root).table(ORDERS))
    file = FileFact("orders/a.gz", 1, 1, "sum", defect="cut off")
    ledger.record_files(FileEvent.FAILED, ORDERS, target, day(), [file])
    assert FixApprovalOperator(task_id="approve").execute(context) is None
    assert replay().execute(context)["message"] == "orders/a.gz of bronze.orders given up"
    failure = Ledger(LakehousePaths(house.root)).failed_files(ORDERS, target)["orders/a.gz"]
    assert (failure.given_up, failure.file.defect) == (True, "by ann: the shop was closed (cut off)")

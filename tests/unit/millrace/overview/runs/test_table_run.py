"""What a run did to a table: from the state of the table, or from the ledger for a run that the state has forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from millrace.contracts.job.contention import LeaseWait, LostRace
from millrace.contracts.job.report import RowCounts
from millrace.contracts.job.task_result import TaskResult
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.ledger.commit_history import TableWrite
from millrace.control.ops_tables import OpsTables
from millrace.errors import Outcome
from millrace.overview.attention import Remedy, Trouble
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.overview.runs.run import Run, RunTask, Work
from millrace.overview.runs.run_overview import answer, next_steps
from millrace.overview.runs.table_run import TableOutcome, TableRun, table_runs, with_history
from millrace.overview.tables.table_overview import TableOverview
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_document, bronze_spec, gold_spec, silver_spec, write_specs
from tests.support.ledger.delta_tables import day, judge, load_batch
from tests.support.silver.known_customers import CUSTOMERS, ORDERS, shop_documents

SPEC = bronze_spec()
NOW = datetime.now(UTC) + timedelta(minutes=50)
"""When the tasks of the run have ended: after the table was created, however long the tests before these take."""
LOADED = TaskResult(outcome=Outcome.COMMITTED, message="", version=1)
HOUR = timedelta(hours=1)


def task(work: Work, state: str = "success", **more: object) -> RunTask:
    return replace(RunTask("shop", "run-2", f"orders.{work.name}", -1, state, work, SPEC.table), **more)  # type: ignore[arg-type]


def run_of(*tasks: RunTask) -> Run:
    return Run("shop", "run-2", "success", created=NOW - HOUR, started=NOW - HOUR, ended=NOW + HOUR, tasks=tasks)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with three batches, of which `run-2` has written the second one, which was refused."""
    root = tmp_path_factory.mktemp("lake")
    write_specs(root / "specs", bronze_document())
    for rows in (5, 12, 7):
        batch = load_batch(root, SPEC, rows=rows)
        judge(root, SPEC, batch.version, passed=rows != 12)
    wait, lost = LeaseWait(seconds=9, holders="run-1"), LostRace(conflict="ConcurrentAppendException", run_id="run-9")
    for run_id in ("run-1", "run-2"):
        OpsTables(LakehousePaths(root)).commits.record(
            TableWrite(SPEC.table, run_id, NOW, version=2, waited=wait, lost=(lost,))
        )
    return root


def shown(root: Path, run: Run, *, is_forgotten: bool = False) -> TableRun:
    paths = LakehousePaths(root)
    overview = LakehouseReader(paths, root / "specs").read_table(SPEC.table, NOW, no_failed_tasks)
    assert overview is not None
    if is_forgotten:
        overview = replace(overview, batches=overview.batches[2:] * 30)
    [table] = table_runs(run, {SPEC.table: overview})
    return with_history(table, run, OpsTables(paths))


@pytest.mark.parametrize("is_forgotten", [False, True], ids=["by the state", "by the ledger"])
def test_a_run_has_its_own_batches_gate_result_and_conflicts(root: Path, is_forgotten: bool) -> None:
    run = run_of(task(Work.WRITE), task(Work.GATE, "failed", checked=2))
    table = shown(root, run, is_forgotten=is_forgotten)
    assert table.outcome is TableOutcome.REFUSED
    assert [(batch.run_id, batch.version) for batch in table.batches] == [("run-2", 2)]
    assert table.rows == RowCounts(read=12, applied=12, inserted=12)
    assert (table.result.version, table.result.passed) == (2, False)
    [write] = table.writes
    assert (write.run_id, write.waited.holders, write.lost[0].run_id) == ("run-2", "run-1", "run-9")
    assert table.settled_by == 3
    assert next_steps([table], NOW) == [], "readers have a newer version by now"


def test_nothing_is_to_be_done_about_an_earlier_table(root: Path) -> None:
    write, gate = task(Work.WRITE, "failed"), task(Work.GATE, "failed", checked=2)
    now = shown(root, run_of(replace(write, ended=NOW), replace(gate, ended=NOW, checked=4)))
    assert not now.is_of_earlier_table
    assert [step.kind for step in next_steps([now], NOW)] == [Trouble.FAILED]
    early = now.overview.created - timedelta(seconds=1)
    earlier = shown(root, run_of(replace(write, ended=early), replace(gate, ended=early)))
    assert (earlier.outcome, earlier.is_of_earlier_table) == (TableOutcome.REFUSED, True)
    assert (earlier.result, earlier.settled_by) == (None, None), "version 2 was that of another table"
    assert next_steps([earlier], NOW) == []
    again = shown(root, run_of(replace(write, ended=early), replace(gate, ended=NOW)))
    assert not again.is_of_earlier_table, "a person has cleared its gate"


def test_a_failed_task_is_to_be_looked_at_and_says_what_helps(root: Path) -> None:
    lost = TaskResult(outcome=Outcome.CONFLICT, message="lost 7 to run-9\n\nWait.")
    run = run_of(task(Work.WRITE, "failed", result=lost, tries=3, ended=NOW), task(Work.GATE, "upstream_failed"))
    [step] = next_steps([shown(root, run)], NOW)
    assert (step.kind, step.action) == (Trouble.FAILED, Remedy.LOOK)
    assert step.cause.startswith("the task orders.WRITE failed after 3 tries: other writers came first")
    assert "7" not in step.cause, "alerts tell the cause to people who may see no value of a row"
    assert step.message == ["lost 7 to run-9", "Wait."]
    assert step.way_out == "Clear it when they are done."
    [step] = next_steps([shown(root, run_of(task(Work.WRITE, "failed", ended=NOW)))], NOW)
    assert step.cause == "the task orders.WRITE failed: it left no report, because its process was ended or died"
    assert step.message == []


def test_a_task_that_asks_a_person_says_so_after_those_that_began_before_it() -> None:
    tasks = (
        task(Work.APPROVAL, "", task_id="override"),
        task(Work.APPROVAL, "awaiting_input", task_id="approve", started=NOW),
        task(Work.APPROVAL, task_id="refusal", started=NOW - HOUR),
    )
    run = run_of(*tasks)
    [table] = table_runs(run, {})
    assert (table.outcome, table.progress) == (TableOutcome.WAITS, "approve waits for an answer")
    assert [each.task_id for each in table.tasks] == ["refusal", "approve", "override"]
    assert [each.task_id for each in run.asking] == ["approve"]


def test_a_table_that_waits_for_its_delivery_names_the_folder(root: Path) -> None:
    run = replace(run_of(task(Work.FILES, "deferred")), interval=day(4))
    assert shown(root, run).progress == "waits for its landing files in orders/date=2013-01-04"


@pytest.mark.parametrize(
    ("tasks", "outcome"),
    [
        ([task(Work.WRITE), task(Work.GATE, "failed")], TableOutcome.FAILED),
        ([task(Work.WRITE, "upstream_failed")], TableOutcome.BLOCKED),
        ([task(Work.FILES, "deferred"), task(Work.WRITE, "")], TableOutcome.WAITS),
        ([task(Work.FILES), task(Work.WRITE, "running")], TableOutcome.RUNNING),
        ([task(Work.FILES, "")], TableOutcome.TO_COME),
        ([task(Work.WRITE), task(Work.GATE)], TableOutcome.NOTHING_NEW),
        ([task(Work.WRITE, "skipped")], TableOutcome.SKIPPED),
        ([task(Work.MAINTENANCE)], TableOutcome.MAINTAINED),
        ([task(Work.APPROVAL)], TableOutcome.DECIDED),
        ([task(Work.WRITE, result=LOADED)], TableOutcome.UNCHECKED),
    ],
)  # fmt: skip
def test_the_tasks_say_how_the_run_has_ended_for_a_table(tasks: list[RunTask], outcome: TableOutcome) -> None:
    run = run_of(*tasks)
    [table] = table_runs(run, {})
    assert table.outcome is outcome
    assert answer(run, [table]) == f"1 table: 1 {outcome.value}."


def test_a_decision_about_rows_a_task_that_is_tried_again_and_a_run_without_tasks_say_so() -> None:
    for action, outcome in (("discard rows", TableOutcome.DECIDED), ("replay rows", TableOutcome.NOTHING_NEW)):
        of_rows = replace(run_of(task(Work.APPROVAL), task(Work.REPLAY)), form={"action": action})
        assert [table.outcome for table in table_runs(of_rows, {})] == [outcome]
    away = TaskResult(outcome=Outcome.SPARK_UNAVAILABLE, message="no server at sc://secret")
    [table] = table_runs(run_of(task(Work.WRITE, "up_for_retry", result=away)), {})
    assert table.outcome is TableOutcome.WAITS
    assert table.progress == "orders.WRITE is tried again: Spark did not answer"
    without = run_of(RunTask("shop", "run-2", "mail", -1, "success"))
    assert table_runs(without, {}) == []
    assert answer(without, []) == "This run has no task of Millrace."


def test_a_table_that_did_not_run_names_what_stopped_it_but_not_the_tables_in_between() -> None:
    def task_of(table: str, work: Work, state: str, **more: object) -> RunTask:
        return replace(task(work, state, **more), task_id=f"{table}.{work.name}", table=table)

    run = run_of(
        task_of("bronze.orders", Work.WRITE, "success"),
        task_of("bronze.orders", Work.GATE, "failed", checked=1),
        task_of("silver.orders", Work.WRITE, "upstream_failed"),
        task_of("gold.revenue_daily", Work.WRITE, "upstream_failed"),
    )
    overviews = {spec.table: TableOverview(spec) for spec in (SPEC, silver_spec(), gold_spec())}
    shown_tables = {each.table: each for each in table_runs(run, overviews)}
    assert shown_tables["gold.revenue_daily"].outcome is TableOutcome.BLOCKED
    reasons = {table: each.progress for table, each in shown_tables.items()}
    because = "because of bronze.orders (refused)"
    assert reasons == {"bronze.orders": "", "silver.orders": because, "gold.revenue_daily": because}


def test_a_table_whose_rows_wait_for_another_one_names_it_if_that_stopped_it() -> None:
    *_, customers, _, orders = [{**document, "domain": "shop"} for document in shop_documents()]
    run = run_of(
        task(Work.GATE, "failed", checked=1, table=CUSTOMERS), task(Work.WRITE, "upstream_failed", table=ORDERS)
    )
    specs = map(SilverSpec.model_validate, (customers, orders))
    tables = table_runs(run, {spec.table: TableOverview(spec) for spec in specs})
    reasons = {each.table: each.progress for each in tables}
    assert reasons == {CUSTOMERS: "", ORDERS: "because of silver.customers (refused)"}

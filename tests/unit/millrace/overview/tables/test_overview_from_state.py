"""The condition of a table from its state, and what needs a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from millrace.contracts.job.report import CheckResult, RowCounts
from millrace.contracts.job.task_result import TaskResult
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.gates.verdicts import Verdicts, summarize
from millrace.control.ledger.deletes import Deletes
from millrace.control.ledger.states.measures import Measures
from millrace.control.ledger.states.recent_batches import RecentBatches, closed_batch
from millrace.control.ledger.states.streams import Streams, advance_streams
from millrace.control.ledger.states.table_state import StatePart, TableState
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.log.batch import BatchSources, Winner
from millrace.errors import Outcome
from millrace.overview.attention import Remedy, attention_needed
from millrace.overview.tables.failed_task import FailedTask
from millrace.overview.tables.overview_from_state import overview_of
from millrace.overview.tables.table_overview import Condition, Questions, TableOverview
from tests.support.documents.specs import bronze_spec, silver_spec
from tests.support.ledger.delta_tables import FLIGHTS, day, intent_of
from tests.support.ledger.gate_results import verdict

SPEC = silver_spec(table=FLIGHTS.table)
NOW = day(9).end
NO_QUESTIONS = Questions()
REFUSED_DELETES = TaskResult(outcome=Outcome.DELETES_REFUSED, message="3 of 4 keys")


def state(*parts: StatePart) -> TableState:
    return TableState({type(part).__name__: part.model_dump(mode="json") for part in parts})


def batches(*sources: BatchSources) -> RecentBatches:
    """Return batches with the versions 1, 2, ..., closed one day after the other."""
    winners = [Winner(intent_of("t", number, sources=each), number) for number, each in enumerate(sources, start=1)]
    closed = [closed_batch(winner, RowCounts(), NOW + timedelta(days=winner.version)) for winner in winners]
    return RecentBatches(table_id="t", batches=tuple(closed))


def measures(files: int, partitions: int = 1) -> Measures:
    return Measures(table_id="t", version=1, mark="m", rows=9, size=5000, files=files, partitions=partitions)


def shown(*parts: StatePart, questions: Questions = NO_QUESTIONS) -> TableOverview:
    return overview_of(SPEC, state(*parts), questions, (), NOW)


def refused_after_pass() -> Verdicts:
    return summarize([verdict("t", 1), verdict("t", 2, passed=False)])


def test_a_refused_version_can_be_let_pass_until_its_rows_were_restored() -> None:
    refused = shown(refused_after_pass(), batches(BatchSources(), BatchSources()), measures(1))
    assert (refused.condition, refused.since) == (Condition.REFUSED, NOW + timedelta(days=2))
    assert [item.action for item in attention_needed([refused], NOW)] == [Remedy.OVERRIDE]
    restored = shown(refused_after_pass(), batches(BatchSources(), BatchSources(), BatchSources(restores=1)))
    assert [item.action for item in attention_needed([restored], NOW)] == [Remedy.RUN]


def test_a_gate_that_failed_is_no_trouble_once_readers_have_the_rows_that_it_refused() -> None:
    refusal = TaskResult(outcome=Outcome.GATE_FAILED, message="refused", version=2)
    gate = FailedTask("flights", "run-2", "silver.flights_gate", -1, NOW, refusal)
    writer = replace(gate, task_id=FLIGHTS.table, result=TaskResult(outcome=Outcome.FAILED, message="", version=2))

    def shown_after(verdicts: Verdicts, *sources: BatchSources) -> TableOverview:
        return overview_of(SPEC, state(verdicts, batches(*sources), measures(1)), NO_QUESTIONS, (gate, writer), NOW)

    two, passed = (BatchSources(), BatchSources()), [verdict("t", 1), verdict("t", 2, passed=False), verdict("t", 3)]
    assert shown_after(refused_after_pass(), *two).failed == [gate, writer]
    assert shown_after(summarize(passed), *two, BatchSources()).failed == [writer]
    assert shown_after(summarize(passed), *two, BatchSources(restores=1)).failed == [gate, writer]


def test_a_full_snapshot_that_was_refused_needs_nobody_once_a_later_one_is_certified() -> None:
    spec = silver_spec(table=FLIGHTS.table, snapshot="full")
    refused = FailedTask("flights", "run-1", FLIGHTS.table, -1, NOW + timedelta(days=1, hours=1), REFUSED_DELETES)
    first, later = BatchSources(), BatchSources(snapshot_at=day(3).start)
    waits = later.model_copy(update={"waiting": (day(2).start,)})

    def failed_after(*sources: BatchSources, certified: int, spec: SilverSpec = spec) -> list[FailedTask]:
        winner = Winner(intent_of("t", len(sources), sources=sources[-1]), len(sources))
        parts = (summarize([verdict("t", certified)]), batches(*sources), advance_streams(winner, None, None))
        return list(overview_of(spec, state(*parts, measures(1)), NO_QUESTIONS, (refused,), NOW).failed)

    assert failed_after(first, certified=1) == [refused]
    assert failed_after(first, later, certified=1) == [refused], "the later one is not certified"
    assert failed_after(first, later, certified=2) == []
    assert failed_after(first, waits, certified=2) == [refused], "the history still lacks it"
    assert failed_after(first, later, certified=2, spec=SPEC) == [refused], "its rows were no snapshot"


def test_a_task_that_failed_before_the_table_was_created_is_of_an_earlier_table() -> None:
    refusal = TaskResult(outcome=Outcome.GATE_FAILED, message="refused", version=7)
    before = FailedTask("flights", "run-2", "silver.flights_gate", -1, NOW - timedelta(seconds=1), refusal)
    after = replace(before, task_id=FLIGHTS.table, at=NOW, result=None)
    created = measures(1).model_copy(update={"created": NOW})

    def shown_with(*parts: StatePart) -> TableOverview:
        return overview_of(SPEC, state(*parts), NO_QUESTIONS, (after, before), NOW)

    assert shown_with(created).failed == [after]
    assert shown_with(measures(1)).failed == [after, before], "an earlier Millrace has not recorded when it was created"
    never = shown_with()
    assert (never.failed, never.condition) == ([after, before], Condition.FAILED)
    assert shown_with(created.model_copy(update={"created": NOW - timedelta(days=1)})).failed == [after, before]
    missing = replace(before, task_id="bronze.orders", result=None)
    gate = replace(before, task_id="bronze.orders_gate")
    bronze = overview_of(bronze_spec(), state(created), NO_QUESTIONS, (missing, gate), NOW)
    assert bronze.failed == [missing], "a day that bronze did not load is still to be loaded"


def test_only_the_newest_refused_version_can_be_let_pass() -> None:
    verdicts = summarize([verdict("t", 1), verdict("t", 2, passed=False), verdict("t", 3, passed=False)])
    [item] = attention_needed([shown(verdicts, measures(1))], NOW)
    assert item.fields == {"version": 3}
    assert item.cause.startswith(f"{FLIGHTS.table} version 2 refused")
    assert item.cause.endswith("; version 3, which came after it, was refused as well")
    assert item.subjects == ("t/2",)


def test_the_cause_of_a_refusal_has_no_value_of_a_row() -> None:
    check = CheckResult(rule="expect_column_values_to_not_be_null(n)", action="fail", passed=False)
    for found, result in (
        ({"unexpected_rows": 2, "samples": ("secret",)}, "is failed by 2 rows"),
        ({"observed": "secret"}, "failed"),
        ({"observed": ["secret"]}, "failed"),
        ({"observed": 7}, "failed"),
        ({"error": "secret is no number"}, "could not be checked"),
    ):
        checks = (check.model_copy(update=found), check)
        refused = verdict("t", 2, passed=False).model_copy(
            update={"checks": checks, "refused": "such as secret\nThen clear this task."}
        )
        [item] = attention_needed([shown(summarize([refused]))], NOW)
        cause = f"{FLIGHTS.table} version 2 refused: {check.rule} {result}; and 1 more failed"
        assert item.cause == cause
        assert item.way_out.startswith("Fix the rule, then clear the task of its gate; or have the data corrected")


def test_facts_of_an_earlier_table_of_that_name_do_not_count() -> None:
    earlier = (summarize([verdict("earlier", 40)]), WaitingRows(table_id="earlier", rows=3, oldest=NOW))
    table = shown(*earlier, batches(BatchSources()), measures(1))
    assert (table.condition, table.certified, table.waiting) == (Condition.UNCHECKED, None, None)
    assert table.table_id == "t"


def test_a_version_of_maintenance_is_not_a_batch_without_a_check() -> None:
    checked = shown(
        summarize([verdict("t", 1)]), batches(BatchSources()), measures(1).model_copy(update={"version": 2})
    )
    assert (checked.condition, checked.newest) == (Condition.CERTIFIED, 2)
    unchecked = shown(summarize([verdict("t", 1)]), batches(BatchSources(), BatchSources()), measures(1))
    assert (unchecked.condition, unchecked.since) == (Condition.UNCHECKED, NOW + timedelta(days=2))


def test_deletes_wait_only_until_a_batch_has_read_their_source_version() -> None:
    asked = Deletes(SPEC.table, "t", day().start, "bronze.orders", "s", 5, 3, 4, ("order_id=secret",), "it lacks them")
    [item] = attention_needed([shown(questions=Questions([asked]))], NOW)
    assert (item.action, item.fields) == (Remedy.ALLOW_DELETES, {"version": 5})
    assert item.way_out.startswith("If the source lost them")
    assert "secret" not in item.cause, "a sample is a value of a row"
    for upto, condition in ((4, Condition.APPROVAL), (5, Condition.UNCHECKED)):
        read = BatchSources(ranges={"bronze.orders": (None, upto)})
        streams: Streams = advance_streams(Winner(intent_of("t", sources=read), 1), None, None)
        assert shown(streams, questions=Questions([asked])).condition is condition


def test_many_small_files_are_named_unless_each_is_the_only_one_of_its_partition() -> None:
    assert [shown(measures(files)).has_small_files for files in (1, 8, 9)] == [False, False, True]
    assert shown(measures(20)).expected_files == 1
    assert not shown(measures(20, partitions=20)).has_small_files

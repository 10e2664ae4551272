"""The flights through a real Airflow: every way to run a day ends in the tables that the source calls for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

import pytest
from deltalake import DeltaTable

from demo.backfill import DayOfBackfill
from demo.oracle import work_out
from demo.outcome import outcomes
from embedded.airflow_api import AirflowApi, Run, Task
from embedded.stack import Stack
from include.cli_facts import table_facts
from include.paths import LakehousePaths
from include.settings import Settings
from tests.e2e.days import FIRST, FOURTH, PATIENCE_S, THIRD, RunDay
from tests.e2e.waiting import drivers, wait_for

TABLES = 8


@dataclass(frozen=True)
class KilledAndCleared:
    """A run by hand, one task of which was killed half way and then cleared.

    Attributes:
        killed: the task as it ran.
        ended: the run, once it had failed for that.
        cleared: the task after the clear.
        run: the run at its end.
    """

    killed: Task
    ended: Run
    cleared: Task
    run: Run


@pytest.fixture(scope="module")
def fourth_day(
    api: AirflowApi, stack: Stack, three_days: list[DayOfBackfill], start_day: RunDay, lakehouse: Settings
) -> KilledAndCleared:
    """The fourth day, run by hand; its merge into silver.flights is killed half way, and cleared."""
    assert three_days
    intents = count_intents(lakehouse, "silver.flights")
    run = start_day("flights", FOURTH)
    driver = wait_for(lambda: drivers(stack.home, "silver.flights"))[0]
    wait_for(lambda: count_intents(lakehouse, "silver.flights") > intents)
    driver.suspend()  # or it might end well before Airflow hears of it

    killed = api.task(run, "silver.flights")
    api.mark_failed(killed)

    wait_for(lambda: not drivers(stack.home, "silver.flights"), patience_s=30)
    ended = api.wait_for_run(run, PATIENCE_S)
    api.clear(run, "silver.flights")
    run = api.wait_for_run(run, PATIENCE_S)
    return KilledAndCleared(killed, ended, api.task(run, "silver.flights"), run)


def assert_tables_hold(settings: Settings, last: date) -> None:
    """Every table holds what the source delivered up to `last`, as DuckDB reads and works it out by itself."""
    oracle = work_out(settings.landing, FIRST, last + timedelta(days=1))
    found = outcomes(settings.root, oracle, [], oracle.counts())
    assert len(found) == TABLES
    assert all(one.expected_rows for one in found)
    assert {one.facts.table: one.wrong for one in found if one.wrong} == {}


@pytest.mark.timeout(900)
def test_a_backfill_of_three_days_two_at_once_ends_in_the_right_tables(
    three_days: list[DayOfBackfill], lakehouse: Settings
) -> None:
    assert [day.day for day in three_days] == [FIRST, FIRST + timedelta(days=1), THIRD]
    assert all(len(day.tasks) == 2 * TABLES for day in three_days)
    assert {task.state for day in three_days for task in day.tasks} == {"success"}
    assert_tables_hold(lakehouse, THIRD)


@pytest.mark.timeout(900)
def test_two_days_of_the_backfill_ran_at_once(three_days: list[DayOfBackfill]) -> None:
    spans = sorted((day.run.start_date, day.run.end_date) for day in three_days if day.run.start_date)
    assert len(spans) == 3
    overlaps = sum(later[0] < earlier[1] for earlier, later in pairwise(spans) if earlier[1])
    assert overlaps >= 1


@pytest.mark.timeout(900)
def test_a_run_by_hand_whose_task_is_killed_half_way_and_cleared_ends_right(
    fourth_day: KilledAndCleared, lakehouse: Settings
) -> None:
    assert (fourth_day.killed.state, fourth_day.ended.state) == ("running", "failed")
    assert (fourth_day.cleared.state, fourth_day.run.state) == ("success", "success")
    assert fourth_day.cleared.try_number > fourth_day.killed.try_number
    assert_tables_hold(lakehouse, FOURTH)


@pytest.mark.timeout(900)
def test_running_a_day_again_changes_no_table_and_starts_no_driver(
    api: AirflowApi, fourth_day: KilledAndCleared, start_day: RunDay, lakehouse: Settings
) -> None:
    tasks = {task.task_id for task in api.tasks("flights", fourth_day.run.dag_run_id)}
    tables = sorted(task for task in tasks if "gate" not in task)
    assert len(tables) == TABLES
    before = {table: table_facts(table, lakehouse.root) for table in tables}

    again = api.wait_for_run(start_day("flights", FOURTH), PATIENCE_S)

    assert again.state == "success"
    assert {table: table_facts(table, lakehouse.root) for table in tables} == before
    logs = ["\n".join(api.log(task)) for task in api.tasks("flights", again.dag_run_id) if task.task_id in tables]
    assert len(logs) == TABLES
    assert all("no Spark is started" in log for log in logs)


def count_intents(settings: Settings, table: str) -> int:
    """How many batches of a table the ledger knows to have been begun."""
    batches = str(LakehousePaths(settings.root).ops("batches"))
    return DeltaTable(batches).to_pyarrow_table(columns=["table"])["table"].to_pylist().count(table)

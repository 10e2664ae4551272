"""The flights through a real Airflow: every way to run a day ends in the tables that the source calls for."""

from __future__ import annotations

import pytest

from demo.backfill import DayOfBackfill
from embedded.airflow.api import AirflowApi
from include.cli.facts import table_facts
from include.settings import Settings
from tests.e2e.days import FIRST, PATIENCE_S, SECOND, RunDay
from tests.support.right_tables import TABLES, assert_rows_of_source

SENSORS = 3
"""The bronze tables with landing files."""


@pytest.mark.timeout(900)
def test_a_backfill_of_two_days_at_once_ends_in_the_right_tables(
    two_days: list[DayOfBackfill], lakehouse: Settings
) -> None:
    assert [day.day for day in two_days] == [FIRST, SECOND]
    assert all(len(day.tasks) == 2 * TABLES + SENSORS for day in two_days)
    assert {task.state for day in two_days for task in day.tasks} == {"success"}
    assert_rows_of_source(lakehouse, FIRST, SECOND)


@pytest.mark.timeout(900)
def test_the_note_of_a_run_and_the_log_of_a_task_name_its_day(api: AirflowApi, two_days: list[DayOfBackfill]) -> None:
    for day in two_days:
        assert api.get(day.run.path)["note"] == f"Data of {day.day} (UTC)"
        first, *_ = api.log(api.task(day.run, "silver.weather"))
        assert first == f"silver.weather for {day.day} (UTC)"


@pytest.mark.timeout(900)
def test_both_days_of_the_backfill_ran_at_once(two_days: list[DayOfBackfill]) -> None:
    spans = [(day.run.start_date, day.run.end_date) for day in two_days]
    assert max(start for start, _ in spans) < min(end for _, end in spans)


@pytest.mark.timeout(900)
def test_running_a_day_again_by_hand_changes_no_table_and_starts_no_driver(
    api: AirflowApi, two_days: list[DayOfBackfill], start_day: RunDay, lakehouse: Settings
) -> None:
    ids = [task.task_id for task in two_days[-1].tasks]
    tables = sorted(task_id for task_id in ids if not task_id.endswith(("_gate", ".files")))
    assert len(tables) == TABLES
    before = {table: table_facts(table, lakehouse.root) for table in tables}

    again = api.wait_for_run(start_day("flights", SECOND), PATIENCE_S)

    assert again.state == "success"
    assert {table: table_facts(table, lakehouse.root) for table in tables} == before
    logs = ["\n".join(api.log(task)) for task in api.tasks("flights", again.dag_run_id) if task.task_id in tables]
    assert len(logs) == TABLES
    assert all("no Spark is started" in log for log in logs)

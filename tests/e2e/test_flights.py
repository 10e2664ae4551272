"""The flights through a real Airflow: every way to run a day ends in the tables that the source calls for."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from demo.backfill import DayOfBackfill
from embedded.airflow.api import AirflowApi
from include.cli.facts import table_facts
from include.settings import Settings
from tests.e2e.days import FIRST, PATIENCE_S, THIRD, RunDay
from tests.support.right_tables import TABLES, assert_rows_of_source

SENSORS = 3
"""The bronze tables with landing files."""


@pytest.mark.timeout(900)
def test_a_backfill_of_three_days_two_at_once_ends_in_the_right_tables(
    three_days: list[DayOfBackfill], lakehouse: Settings
) -> None:
    assert [day.day for day in three_days] == [FIRST, FIRST + timedelta(days=1), THIRD]
    assert all(len(day.tasks) == 2 * TABLES + SENSORS for day in three_days)
    assert {task.state for day in three_days for task in day.tasks} == {"success"}
    assert_rows_of_source(lakehouse, FIRST, THIRD)


@pytest.mark.timeout(900)
def test_the_note_of_a_run_and_the_log_of_a_task_name_its_day(api: AirflowApi, three_days: list[DayOfBackfill]) -> None:
    for day in three_days:
        assert api.get(day.run.path)["note"] == f"Data of {day.day} (UTC)"
        first, *_ = api.log(api.task(day.run, "silver.weather"))
        assert first == f"silver.weather for {day.day} (UTC)"


@pytest.mark.timeout(900)
def test_two_days_of_the_backfill_ran_at_once(three_days: list[DayOfBackfill]) -> None:
    spans = sorted((day.run.start_date, day.run.end_date) for day in three_days if day.run.start_date)
    assert len(spans) == 3
    overlaps = sum(later[0] < earlier[1] for earlier, later in pairwise(spans) if earlier[1])
    assert overlaps >= 1


@pytest.mark.timeout(900)
def test_running_a_day_again_by_hand_changes_no_table_and_starts_no_driver(
    api: AirflowApi, three_days: list[DayOfBackfill], start_day: RunDay, lakehouse: Settings
) -> None:
    ids = [task.task_id for task in three_days[-1].tasks]
    tables = sorted(task_id for task_id in ids if not task_id.endswith(("_gate", ".files")))
    assert len(tables) == TABLES
    before = {table: table_facts(table, lakehouse.root) for table in tables}

    again = api.wait_for_run(start_day("flights", THIRD), PATIENCE_S)

    assert again.state == "success"
    assert {table: table_facts(table, lakehouse.root) for table in tables} == before
    logs = ["\n".join(api.log(task)) for task in api.tasks("flights", again.dag_run_id) if task.task_id in tables]
    assert len(logs) == TABLES
    assert all("no Spark is started" in log for log in logs)

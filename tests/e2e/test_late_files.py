"""A day whose files come late, to a real Airflow: another day is loaded meanwhile, and people are asked for columns."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from embedded.airflow.api import AirflowApi, Run
from millrace.cli.facts import table_facts
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, SECOND, StartDay
from tests.e2e.people import answer_all
from tests.e2e.waiting import ended, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TABLE = "bronze.late_readings"
SENSOR = f"{TABLE}.files"
FIELDS = "sensor,value,place,unit"
ANSWERS = {f"Make place a column of {TABLE}?": "Approve", f"Make unit a column of {TABLE}?": "Reject"}


@pytest.fixture(scope="module")
def waiting(api: AirflowApi, start_day: StartDay, lakehouse: Settings) -> list[Run]:
    """The runs of the first day and of yesterday, which Airflow makes as soon as the DAG is switched on: both wait."""
    first = start_day("late", FIRST)
    runs = [first, *wait_for(lambda: api.runs("late", run_type="scheduled"))]
    wait_for(lambda: {api.task(run, SENSOR).state for run in runs} == {"deferred"}, every_s=1)
    assert api.tasks("late", state="running") == []
    assert "run" not in trials.notes(lakehouse.landing)
    return runs


@pytest.fixture(scope="module")
def meanwhile(api: AirflowApi, waiting: list[Run], start_day: StartDay, lakehouse: Settings) -> Run:
    """The run of the second day, whose files have fields that no column takes."""
    assert len(waiting) == 2
    trials.deliver(lakehouse.landing, "late", SECOND, [("a", 1, "roof", "mm"), ("b", 2, "roof", "mm")], FIELDS)
    return ended(api, start_day("late", SECOND))


def test_a_day_waits_for_its_files_without_a_worker_and_its_deadline_is_told(
    api: AirflowApi, waiting: list[Run], lakehouse: Settings
) -> None:
    assert api.get(api.task(waiting[0], SENSOR).path)["pool"] == "default_pool"
    wait_for(lambda: "deadline" in trials.notes(lakehouse.landing))


def test_another_day_is_loaded_meanwhile(
    api: AirflowApi, waiting: list[Run], meanwhile: Run, lakehouse: Settings
) -> None:
    assert meanwhile.state == "success"
    assert table_facts(TABLE, lakehouse.root).rows == 2
    assert {api.task(run, SENSOR).state for run in waiting} == {"deferred"}
    wait_for(lambda: trials.notes(lakehouse.landing) == {"deadline", "task", "run"})


def test_the_day_is_loaded_once_its_files_are_there_with_the_column_that_was_approved_and_without_the_rejected_one(
    api: AirflowApi, waiting: list[Run], meanwhile: Run, lakehouse: Settings
) -> None:
    assert meanwhile.state == "success"
    (asking,) = wait_for(lambda: api.runs("column_approvals"))
    assert set(answer_all(api, asking, ANSWERS)) == set(ANSWERS)
    assert ended(api, asking).state == "success"

    trials.deliver(lakehouse.landing, "late", FIRST, [("c", 3, "cellar", "mm")], FIELDS)
    assert ended(api, waiting[0]).state == "success"
    sensor = api.task(waiting[0], SENSOR)
    assert sensor.try_number == 1
    assert any("Waits for the files in the triggerer until" in line for line in api.log(sensor))
    rows = DeltaTable(str(LakehousePaths(lakehouse.root).table(TABLE))).to_pyarrow_table().sort_by("sensor")
    assert [(row["sensor"], row["value"], row["place"], row["_rescued"]) for row in rows.to_pylist()] == [
        ("a", 1, None, '{"place":"roof","unit":"mm"}'),
        ("b", 2, None, '{"place":"roof","unit":"mm"}'),
        ("c", 3, "cellar", '{"unit":"mm"}'),
    ]
    assert "unit" not in rows.column_names
    assert len(api.runs("column_approvals")) == 1, "nobody is asked twice"
    api.end_run(waiting[1])

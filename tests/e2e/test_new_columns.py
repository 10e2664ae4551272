"""New fields of a source in a real Airflow: people are asked, and both answers count."""

from __future__ import annotations

import time
from typing import Any

import pytest
from deltalake import DeltaTable

from embedded.airflow_api import AirflowApi
from include.paths import LakehousePaths
from include.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, PATIENCE_S, SECOND, RunDay
from tests.e2e.waiting import wait_for

TABLE = "bronze.asking_readings"
FIELDS = "sensor,value,place,unit"
DAG_ID = "column_approvals"
READING_S = 3
"""A person reads first. Airflow 3.3 fails a task that is answered while its process is still ending."""
ANSWERS = {"place": "Approve", "unit": "Reject"}


def questions(api: AirflowApi) -> dict[str, dict[str, Any]]:
    """Column -> the open question about it, as the UI lists it under Required Actions."""
    found = api.get(f"/api/v2/dags/{DAG_ID}/dagRuns/~/hitlDetails", response_received="false")["hitl_details"]
    subjects = {f"Make {column} a column of {TABLE}?": column for column in ANSWERS}
    return {subjects[one["subject"]]: one for one in found if one["subject"] in subjects}


def answer(api: AirflowApi, question: dict[str, Any], option: str) -> None:
    task = question["task_instance"]
    place = f"/api/v2/dags/{DAG_ID}/dagRuns/{task['dag_run_id']}/taskInstances/{task['task_id']}/{task['map_index']}"
    api.ask("PATCH", f"{place}/hitlDetails", json={"chosen_options": [option], "params_input": {}})


@pytest.mark.timeout(600)
def test_an_approved_field_becomes_a_column_and_a_rejected_one_does_not(
    api: AirflowApi, start_day: RunDay, lakehouse: Settings
) -> None:
    api.set_paused(DAG_ID, False)
    trials.deliver(lakehouse.landing, "asking", FIRST, [("a", 1, "roof", "mm")], FIELDS)
    assert api.wait_for_run(start_day("asking", FIRST), PATIENCE_S).state == "success"

    asked = wait_for(lambda: found if len(found := questions(api)) == len(ANSWERS) else None)
    time.sleep(READING_S)
    for column, option in ANSWERS.items():
        answer(api, asked[column], option)
    (run,) = api.runs(DAG_ID)
    assert api.wait_for_run(run, PATIENCE_S).state == "success"

    trials.deliver(lakehouse.landing, "asking", SECOND, [("b", 2, "cellar", "mm")], FIELDS)
    assert api.wait_for_run(start_day("asking", SECOND), PATIENCE_S).state == "success"
    rows = DeltaTable(str(LakehousePaths(lakehouse.root).table(TABLE))).to_pyarrow_table().sort_by("sensor")
    assert rows.select(["sensor", "value", "place", "_rescued"]).to_pylist() == [
        {"sensor": "a", "value": 1, "place": None, "_rescued": '{"place":"roof","unit":"mm"}'},
        {"sensor": "b", "value": 2, "place": "cellar", "_rescued": '{"unit":"mm"}'},
    ]
    assert "unit" not in rows.column_names
    assert len(api.runs(DAG_ID)) == 1, "nobody is asked twice"

"""New fields of a source in a real Airflow: people are asked, and both answers count."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from embedded.airflow.api import AirflowApi
from include.paths import LakehousePaths
from include.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, PATIENCE_S, SECOND, RunDay
from tests.e2e.people import answer_all
from tests.e2e.waiting import wait_for

pytestmark = pytest.mark.slow

TABLE = "bronze.asking_readings"
FIELDS = "sensor,value,place,unit"
DAG_ID = "column_approvals"
ANSWERS = {f"Make place a column of {TABLE}?": "Approve", f"Make unit a column of {TABLE}?": "Reject"}


@pytest.mark.timeout(600)
def test_an_approved_field_becomes_a_column_and_a_rejected_one_does_not(
    api: AirflowApi, start_day: RunDay, lakehouse: Settings
) -> None:
    trials.deliver(lakehouse.landing, "asking", FIRST, [("a", 1, "roof", "mm")], FIELDS)
    assert api.wait_for_run(start_day("asking", FIRST), PATIENCE_S).state == "success"

    (run,) = wait_for(lambda: api.runs(DAG_ID))
    assert set(answer_all(api, run, ANSWERS)) == set(ANSWERS)
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

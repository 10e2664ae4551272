"""`lakehouse run` beside Airflow: the same jobs, and so the same tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from embedded.airflow.api import AirflowApi, Run
from embedded.airflow.standalone import USER, passwords
from embedded.stack import Stack
from millrace.cli.facts import table_facts
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, PATIENCE_S
from tests.e2e.waiting import ended, wait_for

pytestmark = pytest.mark.slow

LAKEHOUSE = Path(sys.executable).parent / "lakehouse"
VALUES = {"bronze.judged_readings": "value", "silver.judged_readings": "value", "gold.judged_totals": "total"}


def test_lakehouse_run_ends_in_the_same_tables_as_airflow_and_tells_it_of_them(
    killed_run: Run, stack: Stack, lakehouse: Settings, tmp_path: Path, api: AirflowApi
) -> None:
    assert killed_run.state == "success", "Airflow has loaded the same files"
    airflow = {"url": stack.address.url, "login": USER, "password": passwords(stack.home)[USER]}
    environment = {**stack.environment(), **stack.spark.client_env(), "LAKEHOUSE_ROOT": str(tmp_path)}
    environment["LAKEHOUSE_AIRFLOW"] = json.dumps(airflow)
    command = [LAKEHOUSE, "run", "--domain", killed_run.dag_id, "--interval", str(FIRST)]

    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert run.returncode == 0, run.stdout + run.stderr
    own = lakehouse.model_copy(update={"root": tmp_path})
    for table, value in VALUES.items():
        assert trials.certified_rows(own, table, value) == [("a", 1), ("b", 2)]
    events = api.get("/api/v2/assets/events", name_pattern=".judged_", order_by="-timestamp", limit=6)["asset_events"]
    assert [event["extra"].get("from_rest_api") for event in events] == [True] * 6
    assert Counter(event["partition_key"] for event in events) == {None: 3, f"{FIRST}T00:00:00": 3}
    assert {event["extra"]["summary"].partition(":")[0] for event in events} == {
        f"{table} version {table_facts(table, tmp_path).certified_version} for {FIRST}" for table in VALUES
    }


def test_a_dag_with_a_partitioned_schedule_runs_for_the_day_of_each_event(killed_run: Run, api: AirflowApi) -> None:
    assert killed_run.state == "success"
    runs = f"/api/v2/dags/{trials.PARTITIONED}/dagRuns"
    first = wait_for(lambda: api.get(runs, partition_key_pattern=str(FIRST))["dag_runs"])[0]
    run = ended(api, Run.model_validate(first))
    assert (run.state, run.run_type) == ("success", "asset_triggered")
    assert api.get(f"{run.path}/taskInstances/send/xcomEntries/return_value")["value"] == f"the orders of {FIRST}"

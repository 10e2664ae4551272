"""`lakehouse run` beside Airflow: the same jobs, and so the same tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.airflow.api import AirflowApi, Run
from embedded.airflow.standalone import USER, passwords
from embedded.stack import Stack
from include.cli.facts import table_facts
from include.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, PATIENCE_S

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
    events = api.get("/api/v2/assets/events", name_pattern=".judged_", order_by="-timestamp", limit=3)["asset_events"]
    assert [event["extra"].get("from_rest_api") for event in events] == [True] * 3
    assert {event["extra"]["summary"].partition(":")[0] for event in events} == {
        f"{table} version {table_facts(table, tmp_path).certified_version} for {FIRST}" for table in VALUES
    }

"""The example DAGs of the guide, run by Airflow with real Spark jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from embedded.airflow.standalone import warm_spark
from embedded.clone import CLONE
from embedded.spark.server import SparkServer
from millrace.control.gates.gates import Gates
from millrace.control.log.stored_tables import open_table
from millrace.paths import LakehousePaths
from millrace.spark_location import data_plane
from tests.e2e import trials
from tests.support.airflow.airflow_home import airflow_environment
from tests.support.documents.specs import bronze_document, write_specs
from tests.support.lakehouse import order

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EXAMPLES = CLONE / "docs" / "examples"
SCRIPT = CLONE / "tests" / "support" / "airflow" / "dag_run.py"
MARK = "RESULTS OF ALL CASES: "
CASES = {
    "orders": ("orders", {"day": "2025-01-05"}),
    "copy": ("orders_copy", {"day": "2025-01-05"}),
    "several": ("several_tables", {"day": "2025-01-06"}),
    "partners": ("partners", {}),
    "partners again": ("partners", {}),
    "shop": ("shop", {"day": "2025-01-06"}),
    "maintenance": ("orders_maintenance", {}),
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> LakehousePaths:
    return LakehousePaths(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def runs(server: SparkServer, lake: LakehousePaths, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of the runs of all examples."""
    folder = tmp_path_factory.mktemp("examples")
    for table in ("orders", "returns"):
        for day in (5, 6):
            file = folder / "landing" / table / f"date=2025-01-{day:02d}" / "a.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(order(day, 1)) + "\n")
    environment = {
        **os.environ,
        **airflow_environment(folder / "airflow", EXAMPLES),
        "PYTHONPATH": os.pathsep.join((str(CLONE), str(CLONE / "plugins"))),
        "AIRFLOW_CONN_SPARK_DEFAULT": warm_spark(server.port, server.token),
        "LAKEHOUSE_ROOT": str(lake.root),
        "LAKEHOUSE_LANDING": str(folder / "landing"),
        "LAKEHOUSE_TABLES": str(write_specs(folder / "tables", bronze_document(), bronze_document("bronze.returns"))),
    }
    cases = {
        name: {
            "path": str(EXAMPLES / f"{example}.py"),
            "at": f"2025-02-{number:02d}T00:00:00+00:00",
            "conf": conf,
            "environment": {},
            "project": str(data_plane()),
        }
        for number, (name, (example, conf)) in enumerate(CASES.items(), start=1)
    }
    command = [sys.executable, str(SCRIPT), json.dumps(cases)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    results: dict[str, Any] = json.loads(done.stdout.rpartition(MARK)[2])
    for name, run in results.items():
        log = done.stdout.partition(f"\nCASE {name}\n")[2].partition("\nCASE ")[0]
        assert {state for state, _ in run["tasks"].values()} == {"success"}, log[-6000:]
    return results


def test_hand_written_dags_write_check_and_announce_tables_and_wait_for_files(
    runs: dict[str, Any], lake: LakehousePaths
) -> None:
    assert runs["orders"]["results"]["write"]["rows"]["applied"] == 1
    assert runs["orders"]["results"]["gate"]["certified_version"] == runs["orders"]["results"]["write"]["version"]
    [[name, extra]] = runs["orders"]["events"]
    assert (name, extra["interval_start"], extra["batch_seq"]) == ("bronze.orders", "2025-01-05T00:00:00+00:00", 1)
    assert runs["copy"]["results"] == {"files": None, "copy": "copied"}, "the sensor lets the next task run"
    assert set(runs["several"]["tasks"]) == {"load.write", "load.gate"}
    announced = sorted((name, extra["batch_seq"]) for name, extra in runs["several"]["events"])
    assert announced == [("bronze.orders", 2), ("bronze.returns", 1)]
    for table, rows in {"bronze.orders": 2, "bronze.returns": 1}.items():
        assert open_table(lake.table(table), version=Gates(lake).certified(table)).count() == rows


def test_the_table_of_another_tool_is_certified_and_each_version_is_announced(
    runs: dict[str, Any], lake: LakehousePaths
) -> None:
    for run, version in (("partners", 0), ("partners again", 1)):
        [[name, extra]] = runs[run]["events"]
        assert (name, extra["version"], extra["batch_seq"]) == ("bronze.partners", version, None)
    assert Gates(lake).certified("bronze.partners") == 1


def test_maintenance_runs_in_a_dag_of_its_own_and_the_factory_takes_assets_callbacks_and_a_pool(
    runs: dict[str, Any],
) -> None:
    maintenance, shop = runs["maintenance"]["results"], runs["shop"]["results"]
    assert maintenance["optimize"]["message"]
    assert "would" not in maintenance["vacuum"]["message"]
    assert {shop[f"bronze.{name}"]["outcome"] for name in ("orders", "returns")} == {"no_op"}


def test_every_example_is_run() -> None:
    of_a_stack = {f"{trials.PARTITIONED}.py"}
    here = {f"{example}.py" for example, _ in CASES.values()}
    assert here | of_a_stack == {path.name for path in Path(EXAMPLES).glob("*.py")}

"""One wrong spec, before Airflow's own DAG processor: its table stands still, and no DAG goes."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from include.settings import PROJECT
from tests.support.airflow.airflow_home import create_airflow_home
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs

DOMAIN_FILE = """
from datetime import UTC, datetime
from lakehouse_airflow.factory import build_domain_dag
dag = build_domain_dag("{0}", schedule="0 0 * * *", start_date=datetime(2013, 1, 1, tzinfo=UTC), owner="{0}")
"""
WRONG = silver_document(keyz=["order_id"])


@dataclass(frozen=True)
class Seen:
    """What Airflow's database holds after every file was parsed.

    Attributes:
        tasks: DAG id -> its tasks, for DAGs that are in the UI and may be scheduled.
        errors: file name -> its import error.
    """

    tasks: dict[str, set[str]]
    errors: dict[str, str]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Seen, Seen]:
    """Airflow as it is while all specs are sound, and after one of them went wrong."""
    folder = tmp_path_factory.mktemp("airflow")
    dags, tables = folder / "dags", folder / "tables"
    shutil.copytree(PROJECT / "dags", dags, ignore=shutil.ignore_patterns("flights.py", "__pycache__"))
    for domain in ("shop", "finance"):
        (dags / f"{domain}.py").write_text(DOMAIN_FILE.format(domain))
    write_specs(tables, bronze_document(), bronze_document("bronze.returns"), silver_document())
    write_specs(tables, bronze_document("bronze.bills"), gold_document(), domain="finance")
    environment = {
        **create_airflow_home(folder / "home", dags),
        "PYTHONPATH": str(PROJECT),
        "LAKEHOUSE_TABLES": str(tables),
        "LAKEHOUSE_ROOT": str(folder / "data"),
    }
    before = _processed(folder, environment)
    write_specs(tables, WRONG)
    return before, _processed(folder, environment)


def test_every_dag_stays_with_all_of_its_tasks(seen: tuple[Seen, Seen]) -> None:
    before, after = seen
    assert set(before.tasks) > {"shop", "finance", "table_maintenance", "gate_override", "quarantine_replay"}
    assert {"silver.orders", "silver.orders_gate"} < before.tasks["shop"]
    kept = dict(after.tasks)
    # A table whose spec is wrong is not maintained: nobody can say how.
    kept["table_maintenance"] |= {"silver.orders_optimize", "silver.orders_vacuum"}
    assert kept == before.tasks


def test_the_finding_is_an_import_error_once_and_of_no_dag(seen: tuple[Seen, Seen]) -> None:
    before, after = seen
    assert before.errors == {}
    [[file, error]] = after.errors.items()
    assert file == "table_specs.py"
    assert "silver/shop/orders.yaml:" in error
    assert "keyz" in error


def _processed(folder: Path, environment: dict[str, str]) -> Seen:
    command = [sys.executable, "-m", "airflow", "dag-processor", "--num-runs", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    with sqlite3.connect(folder / "home" / "airflow.db") as database:
        alive = "SELECT dag_id FROM dag WHERE NOT is_stale AND NOT has_import_errors"
        dag_ids = {dag_id for (dag_id,) in database.execute(alive)}
        rows = database.execute("SELECT dag_id, data FROM serialized_dag ORDER BY last_updated").fetchall()
        errors = dict(database.execute("SELECT filename, stacktrace FROM import_error").fetchall())
    tasks = {dag_id: {task["__var"]["task_id"] for task in json.loads(data)["dag"]["tasks"]} for dag_id, data in rows}
    return Seen(
        {dag_id: tasks[dag_id] for dag_id in dag_ids}, {os.path.basename(name): text for name, text in errors.items()}
    )

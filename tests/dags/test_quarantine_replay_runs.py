"""The DAG `quarantine_replay` in Airflow's own task runner: the form reaches the job, readers of the table are told."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

import pytest

from include.paths import LakehousePaths
from include.settings import PROJECT
from tests.support.airflow.airflow_home import create_airflow_home
from tests.support.documents.specs import bronze_document, silver_document, write_specs
from tests.support.ledger.quarantine_rows import quarantine, refused

pytestmark = pytest.mark.slow

SCRIPT = PROJECT / "tests" / "support" / "airflow" / "dag_run.py"
MARK = "RESULTS OF ALL CASES: "
ORDERS = "silver.orders"
DAG_FILE = """
from lakehouse_airflow.factory import build_quarantine_replay_dag

dag = build_quarantine_replay_dag(owner="sales")
for task in dag.tasks:
    task.retries = 0
"""
JOB = """
import sys
from include.contracts.job.args import JobArgs
from include.contracts.job.report import JobReport, RowCounts
from include.contracts.job.requests import QuarantineRequest
from include.errors import Outcome
args = JobArgs.from_argv(sys.argv[1:])
request = QuarantineRequest.load(args.request)
message = f"{request.how} in {', '.join(request.rows.ids)} because {request.why}"
JobReport(job="quarantine_replay", table=args.table, interval=args.interval, run_id=args.run_id,
          outcome=Outcome.NO_OP if args.dry_run else Outcome.COMMITTED, message=message, version=2, certified_version=2,
          certified_moved=not args.dry_run, rows=RowCounts(read=1, applied=1, inserted=1)).save(args.report)
"""
FORM = {"table": ORDERS, "ids": "r2", "set_column": "amount", "set_how": "set", "set_value": "7", "why": "the till"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of three cases: a dry run, which is the default, a replay, and an empty form."""
    folder = tmp_path_factory.mktemp("replays")
    for name, text in {"dags/replay.py": DAG_FILE, "spark_jobs/jobs/quarantine_replay.py": JOB}.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    quarantine(LakehousePaths(folder / "lake"), ORDERS, refused(1, "too low"), refused(2, "too low", of_day=5))
    unchanged = {"table": ORDERS, "ids": "r2", "why": "the till", "dry_run": False}
    forms = {"dry run": FORM, "replay": unchanged, "empty": {"table": ORDERS}}
    moments = {name: f"2013-02-0{day}T00:00:00+00:00" for day, name in enumerate(forms, start=1)}
    path = str(folder / "dags" / "replay.py")
    cases = {
        name: {"path": path, "at": moments[name], "conf": form, "environment": {}, "project": str(folder)}
        for name, form in forms.items()
    }
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = {"conn_type": "spark", "host": "sc://127.0.0.1", "port": server.getsockname()[1]}
        environment = {
            **create_airflow_home(folder / "airflow", folder / "dags"),
            "PYTHONPATH": str(PROJECT),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
            "LAKEHOUSE_ROOT": str(folder / "lake"),
            "LAKEHOUSE_TABLES": str(write_specs(folder / "tables", bronze_document(), silver_document())),
        }
        command = [sys.executable, str(SCRIPT), json.dumps(cases)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    results: dict[str, Any] = json.loads(done.stdout.rpartition(MARK)[2])
    for name, run in results.items():
        run["log"] = done.stdout.partition(f"\nCASE {name}\n")[2].partition("\nCASE ")[0]
    return results


def test_the_job_gets_the_form_and_the_tables_new_version_is_announced(runs: dict[str, Any]) -> None:
    succeeded = {"approve": ["success", 1], "replay": ["success", 1]}
    assert runs["replay"]["tasks"] == succeeded, runs["replay"]["log"][-3000:]
    result = runs["replay"]["results"]["replay"]
    assert result["message"] == " in r2 because the till"
    assert runs["dry run"]["results"]["replay"]["message"] == "amount set to '7' in r2 because the till"
    ((name, extra),) = runs["replay"]["events"]
    assert (name, extra["version"], extra["interval_start"]) == (ORDERS, 2, "2013-01-05T00:00:00+00:00")


def test_a_dry_run_announces_nothing(runs: dict[str, Any]) -> None:
    assert runs["dry run"]["results"]["replay"]["outcome"] == "no_op"
    assert runs["dry run"]["events"] == []


def test_a_form_that_names_no_rows_fails_with_what_to_fill_in(runs: dict[str, Any]) -> None:
    assert runs["empty"]["tasks"]["approve"] == ["failed", 1]
    assert "Which rows? Fill in Ids or Reason" in runs["empty"]["log"]

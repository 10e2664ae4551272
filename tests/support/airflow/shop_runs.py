"""Runs of DAGs of a shop in Airflow's task runner, with jobs that commit without Spark, lose once, or hang."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from include.settings import PROJECT

SCRIPT = PROJECT / "tests" / "support" / "airflow" / "dag_run.py"
MARK = "RESULTS OF ALL CASES: "
DAY = {"day": "2013-01-05"}
PATIENCE_S = 300

DAG_FILE = """
from datetime import UTC, datetime, timedelta

from lakehouse_airflow.factory import build_domain_dag

dag = build_domain_dag(
    "shop", schedule="0 0 * * *", start_date=datetime(2013, 1, 1, tzinfo=UTC), owner="sales",
    execution_timeout=timedelta(seconds={timeout}),
)
for task in dag.tasks:
    task.retries = {retries}
"""

HAND_WRITTEN = """
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, CronDataIntervalTimetable, task_group

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from lakehouse_airflow.operators.table_write import TableWriteOperator
from lakehouse_airflow.retries import Backoff, TypedRetryPolicy

daily = CronDataIntervalTimetable("0 0 * * *", timezone="UTC")
quick = TypedRetryPolicy(conflict=Backoff(timedelta(seconds=1)))
with DAG("mapped", schedule=daily, start_date=datetime(2013, 1, 1, tzinfo=UTC), params={"day": None}) as dag:

    @task_group
    def load(table):
        write = TableWriteOperator(task_id="write", table=table, retry_policy=quick)
        write >> QualityGateOperator(task_id="gate", table=table, outlets=[table_asset("bronze.orders")])

    load.expand(table=["bronze.orders"])
    again = TableWriteOperator.partial(task_id="again", retry_policy=quick).expand(table=["bronze.orders"])
    dag.get_task("load.gate") >> again
"""

LATE = """
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable, task, task_group

from include.settings import Settings
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from lakehouse_airflow.operators.table_write import TableWriteOperator
from lakehouse_airflow.retries import Backoff, TypedRetryPolicy
from lakehouse_airflow.sensors.landing import LandingSensor

def deliver():
    folder = Path(Settings().landing) / "orders" / "date=2013-01-07"
    folder.mkdir()
    (folder / "a.json").write_text('{"order_id": "7"}')

daily = CronDataIntervalTimetable("0 0 * * *", timezone="UTC")
quick = TypedRetryPolicy(conflict=Backoff(timedelta(seconds=1)))
with DAG("late", schedule=daily, start_date=datetime(2013, 1, 1, tzinfo=UTC), params={"day": None}) as dag:

    @task
    def source():
        threading.Timer(3, deliver).start()

    @task_group
    def load(table):
        write = TableWriteOperator(task_id="write", table=table, retry_policy=quick, deferrable=True)
        write >> QualityGateOperator(task_id="gate", table=table)

    loaded = load.expand(table=["bronze.orders"])
    source() >> loaded >> LandingSensor.partial(task_id="files").expand(table=["bronze.orders"])
"""

JOB_HEAD = """
import sys
from pathlib import Path
from include.catalog import load_catalog
from include.contracts.job.args import JobArgs
from include.contracts.job.report import JobReport
from include.errors import Outcome
from tests.support.ledger.small_lake import commit_batch, judge
args = JobArgs.from_argv(sys.argv[1:])
lost = Path(__file__).with_name("lost")
def report(outcome, message, **more):
    about = dict(job="bronze_ingest", table=args.table, interval=args.interval, run_id=args.run_id)
    JobReport(**about, outcome=outcome, message=message, **more).save(args.report)
def commit(passed=True):
    spec = load_catalog(args.tables).spec(args.table)
    winner = commit_batch(args.root, args.landing, spec, args.interval, args.run_id)
    judge(args.root, spec, winner, passed=passed)
    report(Outcome.COMMITTED, "loaded 1 file", batch_seq=winner.batch_seq, version=winner.version)
"""
COMMITS = JOB_HEAD + "commit()"
REFUSED = JOB_HEAD + "commit(passed=False)"
LOSES_ONCE = JOB_HEAD + "if lost.exists(): commit()\nelse: lost.touch(); report(Outcome.CONFLICT, 'lost to others')"
# It imports nothing of Millrace, so that it starts quickly on a busy machine, too.
HANGS = """
import subprocess, sys, time
from pathlib import Path
here = Path(__file__)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)", f"child of {here}"])
here.with_name("hangs").touch()
time.sleep(900)
"""


@dataclass(frozen=True)
class Case:
    """One run of a DAG: its lakehouse, which cases may share, its job, its form, the time of its trigger, the DAG."""

    lake: str
    job: str
    conf: dict[str, Any]
    at: str = "2013-02-01T00:00:00+00:00"
    dag: str = "shop"


@dataclass(frozen=True)
class Airflow:
    """An Airflow with these DAGs.

    Attributes:
        folder: the folder with its home, its DAG file, and a folder for each lake.
        environment: the environment of its processes.
    """

    folder: Path
    environment: dict[str, str]

    def start(self, cases: dict[str, Case], timeout: int = 600, retries: int = 1) -> subprocess.Popen[str]:
        """Start the runs, one after another, in one process."""
        (self.folder / "dags" / "shop.py").write_text(DAG_FILE.format(timeout=timeout, retries=retries))
        (self.folder / "dags" / "mapped.py").write_text(HAND_WRITTEN)
        (self.folder / "dags" / "late.py").write_text(LATE)
        arguments = {name: self._arguments(name, case) for name, case in cases.items()}
        command = [sys.executable, str(SCRIPT), json.dumps(arguments)]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(command, env=self.environment, start_new_session=True, **pipes)

    def results(self, started: subprocess.Popen[str]) -> dict[str, Any]:
        """Return the results of the runs; the `log` of each is its whole output."""
        output, _ = started.communicate(timeout=PATIENCE_S)
        assert started.returncode == 0, output[-4000:]
        results: dict[str, Any] = json.loads(output.rpartition(MARK)[2])
        for name, run in results.items():
            run["log"] = output.partition(f"\nCASE {name}\n")[2].partition("\nCASE ")[0]
        return results

    def _arguments(self, name: str, case: Case) -> dict[str, Any]:
        project = self.folder / "projects" / name
        job = project / "spark_jobs" / "jobs" / "bronze_ingest.py"
        job.parent.mkdir(parents=True)
        job.write_text(case.job)
        return {
            "path": str(self.folder / "dags" / f"{case.dag}.py"),
            "at": case.at,
            "conf": case.conf,
            "project": str(project),
            "environment": {"LAKEHOUSE_ROOT": str(self.folder / "lakes" / case.lake)},
        }

    def children(self, name: str) -> list[psutil.Process]:
        """Return the processes of the job of a case, wherever they are in the process tree."""
        job = str(self.folder / "projects" / name)
        alive = (process for process in psutil.process_iter(["cmdline"]) if process.status() != psutil.STATUS_ZOMBIE)
        processes = [process for process in alive if any(job in part for part in process.info["cmdline"] or ())]
        return [process for process in processes if str(SCRIPT) not in process.info["cmdline"]]

    def wait_until_hanging(self, name: str, started: subprocess.Popen[str]) -> None:
        """Wait until the job of a case and its child hang."""
        note = self.folder / "projects" / name / "spark_jobs" / "jobs" / "hangs"
        deadline = time.monotonic() + PATIENCE_S
        while not note.exists() and time.monotonic() < deadline and started.poll() is None:
            time.sleep(0.1)
        assert note.exists(), started.communicate()[0][-4000:] if started.poll() is not None else "it never hung"
        assert len(self.children(name)) == 2

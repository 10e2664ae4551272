"""Runs of DAGs of a shop in Airflow's task runner, with jobs that commit without Spark, lose once, or hang."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from embedded.clone import CLONE
from tests.support.airflow.airflow_home import airflow_environment
from tests.support.documents.specs import Document, write_specs

SCRIPT = CLONE / "tests" / "support" / "airflow" / "dag_run.py"
MARK = "RESULTS OF ALL CASES: "
DAY = {"day": "2013-01-05"}
ROW_VALUE = "a-value-of-a-row"
PASSWORD = "a-secret-password"
PATIENCE_S = 300

NOTIFIERS = """
import json, os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import BaseNotifier

from lakehouse_airflow.alerts.refusal import RefusalAlert
from lakehouse_airflow.factory import build_alerts_dag, build_domain_dag


class Pager(BaseNotifier):
    template_fields = ("subject", "body")

    def __init__(self):
        super().__init__()
        self.subject, self.body = "{{ alert.title }}", ["{{ alert.html }}", "{{ dag.dag_id }}"]

    def notify(self, context):
        with Path(f"{os.environ['LAKEHOUSE_ROOT']}-{type(self).__name__}").open("a") as file:
            file.write(json.dumps([self.subject, *self.body, context["alert"].key]) + "\\n")


class Chat(Pager):
    def notify(self, context):
        with Path(f"{os.environ['LAKEHOUSE_ROOT']}-tries").open("a+") as tries:
            tries.write("x")
            if tries.tell() <= 2:
                raise OSError("cannot reach https://chat.example/s3cret")
        super().notify(context)


MAIL = {"subject": "{{ alert.title }}", "html_content": "{{ alert.html }}"}
NOTIFIERS = [Pager(), Chat(), SmtpNotifier(to="data@example.org", from_email="airflow@example.org", **MAIL)]
"""
SHOP = """
dag = build_domain_dag(
    "shop", schedule="0 0 * * *", start_date=datetime(2013, 1, 1, tzinfo=UTC), owner="sales",
    execution_timeout=timedelta(seconds={timeout}), default_args={{"on_failure_callback": RefusalAlert(NOTIFIERS)}},
)
for task in dag.tasks:
    task.retries = {retries}
"""
ALERTS = "dag = build_alerts_dag(notifiers=NOTIFIERS, owner='platform', start_date=datetime(2013, 1, 1, tzinfo=UTC))"
REPLAY = """
from lakehouse_airflow.factory import build_quarantine_replay_dag

dag = build_quarantine_replay_dag(owner="sales")
"""
HAND_WRITTEN = """
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable, task, task_group

from millrace.settings import Settings
from lakehouse_airflow.assets import table_asset
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
with DAG("mapped", schedule=daily, start_date=datetime(2013, 1, 1, tzinfo=UTC), params={"day": None}) as dag:

    @task
    def source():
        threading.Timer(3, deliver).start()

    @task_group
    def load(table):
        write = TableWriteOperator(task_id="write", table=table, retry_policy=quick, deferrable=True)
        write >> QualityGateOperator(task_id="gate", table=table, outlets=[table_asset("bronze.orders")])

    loaded = load.expand(table=["bronze.orders"])
    again = TableWriteOperator.partial(task_id="again", retry_policy=quick).expand(table=["bronze.orders"])
    source() >> loaded >> [again, LandingSensor.partial(task_id="files").expand(table=["bronze.orders"])]
"""
DAG_FILES = {
    "shop": NOTIFIERS + SHOP.format(timeout=600, retries=1),
    "impatient": NOTIFIERS + SHOP.format(timeout=15, retries=0),
    "without_retries": NOTIFIERS + SHOP.format(timeout=600, retries=0),
    "alerts": NOTIFIERS + ALERTS,
    "replay": REPLAY,
    "mapped": HAND_WRITTEN,
}

JOB_HEAD = """
import sys
from pathlib import Path
from millrace.catalog import load_catalog
from millrace.contracts.job.args import JobArgs
from millrace.contracts.job.report import JobReport, RowCounts
from millrace.contracts.job.requests import QuarantineRequest
from millrace.errors import Outcome
from tests.support.ledger.small_lake import commit_batch, judge
args = JobArgs.from_argv(sys.argv[1:])
lost = Path(__file__).with_name("lost")
def report(outcome, message, **more):
    about = dict(job="a_job", table=args.table, interval=args.interval, run_id=args.run_id)
    JobReport(**about, outcome=outcome, message=message, **more).save(args.report)
def commit(passed=True):
    spec = load_catalog(args.tables).spec(args.table)
    winner = commit_batch(args.root, args.landing, spec, args.interval, args.run_id)
    judge(args.root, spec, winner, passed=passed)
    report(Outcome.COMMITTED, "loaded 1 file", batch_seq=winner.batch_seq, version=winner.version)
"""
REFUSED = JOB_HEAD + "commit(passed=False)"
LOSES_ONCE = JOB_HEAD + "if lost.exists(): commit()\nelse: lost.touch(); report(Outcome.CONFLICT, 'lost to others')"
REPLAYS = (
    JOB_HEAD
    + """
request = QuarantineRequest.load(args.request)
report(Outcome.COMMITTED, f"{request.rows.ids[0]} because {request.why}", version=2, certified_version=2,
       certified_moved=True, rows=RowCounts(read=1, applied=1, inserted=1))
"""
)
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
    at: str
    dag: str = "shop"


@dataclass(frozen=True)
class Airflow:
    """An Airflow with these DAGs.

    Attributes:
        folder: the folder with its home, its DAG files, and a folder for each lake.
        environment: the environment of its processes.
    """

    folder: Path
    environment: dict[str, str]

    def start(self, cases: Mapping[str, Case], dag_files: Mapping[str, str] = DAG_FILES) -> subprocess.Popen[bytes]:
        """Start the runs, one after another, in one process."""
        for name, text in dag_files.items():
            (self.folder / "dags" / f"{name}.py").write_text(text)
        arguments = {name: self._arguments(name, case) for name, case in cases.items()}
        command = [sys.executable, str(SCRIPT), json.dumps(arguments)]
        with (self.folder / "output").open("w") as output:
            pipes: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT}
            return subprocess.Popen(command, env=self.environment, start_new_session=True, **pipes)

    def results(self, started: subprocess.Popen[bytes]) -> dict[str, Any]:
        """Return the results of the runs; the `log` of each is its whole output."""
        started.wait(PATIENCE_S)
        output = (self.folder / "output").read_text()
        assert started.returncode == 0, output[-4000:]
        # Airflow may send an event of OpenLineage from a process of its own, which logs after the results.
        results: dict[str, Any] = json.loads(output.rpartition(MARK)[2].partition("\n")[0])
        for name, run in results.items():
            run["log"] = output.partition(f"\nCASE {name}\n")[2].partition("\nCASE ")[0]
        return results

    def _arguments(self, name: str, case: Case) -> dict[str, Any]:
        project = self.folder / "projects" / name
        jobs = project / "jobs"
        jobs.mkdir(parents=True)
        for job in ("bronze_ingest", "silver_merge", "gold_aggregate", "quarantine_replay"):
            (jobs / f"{job}.py").write_text(case.job)
        return {
            "path": str(self.folder / "dags" / f"{case.dag}.py"),
            "at": f"{case.at}T00:00:00+00:00",
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

    def wait_until_hanging(self, name: str, started: subprocess.Popen[bytes]) -> None:
        """Wait until the job of a case and its child hang."""
        note = self.folder / "projects" / name / "jobs" / "hangs"
        deadline = time.monotonic() + PATIENCE_S
        while not note.exists() and time.monotonic() < deadline and started.poll() is None:
            time.sleep(0.1)
        assert note.exists(), (self.folder / "output").read_text()[-4000:]
        assert len(self.children(name)) == 2


@contextmanager
def new_airflow(folder: Path, *documents: Document, **variables: str) -> Iterator[Airflow]:
    """Yield an Airflow with these specs, a landing file of a day, and a Spark server that only listens."""
    (folder / "dags").mkdir()
    landing = folder / "landing" / "orders" / "date=2013-01-05"
    landing.mkdir(parents=True)
    (landing / "a.json").write_text(json.dumps({"order_id": ROW_VALUE, "amount": 1}) + "\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = {"conn_type": "spark", "host": "sc://127.0.0.1", "port": server.getsockname()[1]}
        environment = {
            **os.environ,
            **airflow_environment(folder / "airflow", folder / "dags"),
            "PYTHONPATH": os.pathsep.join((str(CLONE), str(CLONE / "plugins"))),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({**connection, "password": PASSWORD}),
            "LAKEHOUSE_LANDING": str(folder / "landing"),
            "LAKEHOUSE_TABLES": str(write_specs(folder / "tables", *documents)),
        }
        yield Airflow(folder, {**environment, **variables})

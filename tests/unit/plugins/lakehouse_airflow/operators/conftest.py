"""A lakehouse, a server that only listens, and job files of a few lines, which operators run as real processes."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from airflow.sdk import DAG

from lakehouse_airflow.operators import second_person, spark_job
from lakehouse_airflow.operators.question import QuestionOperator, remarked
from lakehouse_airflow.operators.table_write import TableWriteOperator
from millrace.catalog import load_catalog
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import Job
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.contracts.visible_text import visible
from tests.support.documents.specs import bronze_document, write_specs

DAY = Interval(start=datetime(2013, 1, 5, tzinfo=UTC), end=datetime(2013, 1, 6, tzinfo=UTC))

JOB_HEAD = """
import sys
from millrace.contracts.job.args import JobArgs
from millrace.contracts.job.report import JobReport, RowCounts
from millrace.errors import Outcome
args = JobArgs.from_argv(sys.argv[1:])
def report(outcome, message, **more):
    about = dict(job="bronze_ingest", table=args.table, interval=args.interval, run_id=args.run_id)
    JobReport(**about, outcome=outcome, message=message, **more).save(args.report)
"""

COMMITTED = """
report(Outcome.COMMITTED, "loaded 1 of 1 files", batch_seq=1, version=1, certified_version=1,
       rows=RowCounts(read=1, applied=1, inserted=1))
"""


def writer(**given: Any) -> TableWriteOperator:
    """Return a write task of the house's table."""
    return TableWriteOperator(**{"task_id": "orders", "table": "bronze.orders", **given})


@dataclass
class House:
    """One installation for a test.

    Attributes:
        folder: holds everything.
        spec: the one table, `bronze.orders`.
    """

    folder: Path
    spec: BronzeSpec

    @property
    def root(self) -> Path:
        return self.folder / "lakehouse"

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    def deliver(self, name: str = "a.json", interval: Interval = DAY) -> Path:
        """Put a landing file of one row into the interval's folder."""
        path = self.landing / "orders" / f"date={interval.start:%Y-%m-%d}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"order_id": "1", "amount": 2}\n')
        return path

    def job(self, body: str, job: Job = Job.BRONZE_INGEST) -> None:
        """Make `body` the job file; `args` and `report` are at hand in it."""
        path = self.folder / job.application
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(JOB_HEAD + body)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    rule = {"expect_table_row_count_to_be_between": {"min_value": 1}, "action": "fail", "reason": "no empty days"}
    tables = write_specs(tmp_path / "tables", bronze_document(expectations=[rule]))
    spec = load_catalog(tables).spec("bronze.orders")
    assert isinstance(spec, BronzeSpec)
    house = House(tmp_path, spec)
    for name, folder in {"ROOT": house.root, "LANDING": house.landing, "TABLES": tables}.items():
        monkeypatch.setenv(f"LAKEHOUSE_{name}", str(folder))
    monkeypatch.setattr(spark_job, "job_file", lambda application: str(tmp_path / application))
    return house


@pytest.fixture
def warm_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Listen at the port of the connection `spark_default`; the jobs of these tests send nothing to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        connection = {"conn_type": "spark", "host": "sc://127.0.0.1", "port": port, "password": "a-secret-token"}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
        yield port


@pytest.fixture
def run_of() -> Callable[..., dict[str, Any]]:
    """Return a function that makes the context of a run, by default one scheduled for `DAY`."""

    def make(run_id: str = "scheduled__2013-01-06T00:00:00+00:00", **given: Any) -> dict[str, Any]:
        run = {"run_type": "scheduled", "logical_date": DAY.start, "start": DAY.start, "end": DAY.end, **given}
        dag_run = SimpleNamespace(
            dag_id="shop",
            run_id=run_id,
            run_type=run["run_type"],
            logical_date=run["logical_date"],
            data_interval_start=run["start"],
            data_interval_end=run["end"],
            conf=given.get("conf", {}),
        )
        left = given.get("left")
        pushed: dict[str, Any] = {}
        ti = SimpleNamespace(
            dag_id="shop",
            run_id=run_id,
            task_id="bronze.orders",
            try_number=1,
            map_index=given.get("map_index", -1),
            xcom_pull=lambda task_ids: left if isinstance(task_ids, str) else [left],
            xcom_push=pushed.__setitem__,
            pushed=pushed,
        )
        params = {"day": given.get("day"), "reprocess": given.get("reprocess", False)}
        return {
            "dag": DAG("shop", schedule=None, params=params),
            "dag_run": dag_run,
            "ti": ti,
            "run_id": run_id,
            "params": params,
            "outlet_events": given.get("events", {}),
        }

    return make


Record = Callable[..., dict[str, Any]]
"""Answers the question of a run: `(context, operator, by, option)`; returns the context."""


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    """Return a function that asks what an operator asks, and keeps an answer as Airflow's API gives it."""
    recorded: dict[str, dict[str, Any]] = {}

    def find(request: httpx.Request) -> httpx.Response:
        found = recorded.get(request.url.path)
        return httpx.Response(200, json=found) if found else httpx.Response(404)

    @contextmanager
    def api() -> Iterator[httpx.Client]:
        with httpx.Client(transport=httpx.MockTransport(find), base_url="http://airflow") as client:
            yield client

    def make(
        context: dict[str, Any], operator: QuestionOperator, by: str | None = "ann", option: str = "Approve"
    ) -> dict[str, Any]:
        question = operator.question(context)
        assert question is not None
        body, remark = visible(question.body), operator.remark(context)
        place = f"/api/v2/dags/shop/dagRuns/{context['dag_run'].run_id}/taskInstances/{operator.task_id}/-1/hitlDetails"
        recorded[place] = {
            "subject": visible(question.subject),
            "body": remarked(body, remark) if remark else body,
            "chosen_options": [option] if by else None,
            "responded_by_user": {"id": by, "name": by} if by else None,
            "assigned_users": [],
        }
        return context

    monkeypatch.setattr(second_person, "own_airflow_api", api)
    return make


def driver_log(house: House) -> str:
    """Return the only driver log of a house."""
    files = list((house.root / "_millrace" / "driver_logs").rglob("*.log"))
    assert len(files) == 1
    return files[0].read_text()

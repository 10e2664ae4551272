"""What a collector of OpenLineage receives from the tasks of a domain, run by Airflow's task runner."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from include.settings import PROJECT
from tests.support.airflow.airflow_home import create_airflow_home
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs
from tests.support.openlineage.collector import KEY, Collector, running_collector
from tests.support.openlineage.schemas import facets_of, problems_of

SCRIPT = PROJECT / "tests" / "support" / "airflow" / "dag_run.py"
MARK = "RESULTS OF ALL CASES: "
PASSWORD = "a-secret-password"
ROW_VALUE = "a-value-of-a-row"
NAMESPACE = "millrace-tests"

DAG_FILE = """
from datetime import UTC, datetime

from include.contracts.job.args import Job
from lakehouse_airflow.factory import build_domain_dag
from lakehouse_airflow.operators.table_maintenance import TableMaintenanceOperator

dag = build_domain_dag(
    "shop", schedule="0 0 * * *", start_date=datetime(2013, 1, 1, tzinfo=UTC), owner="sales"
)
with dag:
    TableMaintenanceOperator(task_id="optimize", table="bronze.unknown", job=Job.TABLE_OPTIMIZE)
for task in dag.tasks:
    task.retries = 0
"""

JOB = """
import sys
from include.catalog import load_catalog
from include.control.gates.gates import Gates
from include.control.ledger.resolution import table_id
from include.control.log.batch import BatchSources
from include.contracts.job.args import JobArgs
from include.contracts.job.report import JobReport, RowCounts
from include.contracts.spec.table_spec import BronzeSpec, GoldSpec
from include.errors import Outcome
from include.paths import LakehousePaths
from tests.support.ledger.small_lake import commit_batch, commit_sources, judge
args = JobArgs.from_argv(sys.argv[1:])
spec, paths = load_catalog(args.tables).spec(args.table), LakehousePaths(args.root)
if isinstance(spec, BronzeSpec):
    winner = commit_batch(args.root, args.landing, spec, args.interval, args.run_id)
else:
    ranges = {table: (None, Gates(paths).certified(table)) for table in spec.source_tables}
    ids = {table: table_id(paths.table(table)) for table in spec.source_tables}
    sources = BatchSources(ranges=ranges, source_ids=ids)
    winner = commit_sources(args.root, spec, args.interval, args.run_id, sources)
judge(args.root, spec, winner, passed=not isinstance(spec, GoldSpec))
JobReport(
    job="writer", table=args.table, interval=args.interval, run_id=args.run_id, outcome=Outcome.COMMITTED,
    message="loaded", batch_seq=winner.batch_seq, version=winner.version,
    rows=RowCounts(read=5, applied=3, superseded=2, inserted=2, updated=1),
).save(args.report)
"""


class Run:
    """A run whose last gate refuses its version: its results, and what the collector has received of it."""

    def __init__(self, results: dict[str, Any], log: str, collector: Collector, folder: Path) -> None:
        self.results = results
        self.log = log
        self.collector = collector
        self.folder = folder

    def end(self, task: str) -> dict[str, Any]:
        """Return the last event of a task, after checking that it is the second of two of the same run."""
        start, end = self.collector.of_task(self.results["run_id"], f"shop.{task}")
        assert start["eventType"] == "START"
        assert start["run"]["runId"] == end["run"]["runId"]
        return end

    def table(self, table: str) -> tuple[str, str]:
        """Return the name of a table's dataset."""
        return "file", str(self.folder / "lake" / Path(*table.split(".")))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("openlineage")
    dags = folder / "dags"
    dags.mkdir()
    (dags / "shop.py").write_text(DAG_FILE)
    jobs = folder / "project" / "spark_jobs" / "jobs"
    jobs.mkdir(parents=True)
    for job in ("bronze_ingest", "silver_merge", "gold_aggregate"):
        (jobs / f"{job}.py").write_text(JOB)
    landing = folder / "landing" / "orders" / "date=2013-01-05"
    landing.mkdir(parents=True)
    (landing / "a.json").write_text(json.dumps({"order_id": ROW_VALUE, "amount": 1}) + "\n")
    rule = {"expect_table_row_count_to_be_between": {"min_value": 1}, "action": "fail", "reason": "no empty days"}
    tables = write_specs(
        folder / "tables",
        bronze_document(expectations=[rule], description="Orders as delivered.", owner="sales"),
        silver_document(expectations=[rule]),
        gold_document(expectations=[rule], measures={"amount": "sum(o.amount)"}),
    )
    case = {
        "path": str(dags / "shop.py"),
        "at": "2013-02-01T00:00:00+00:00",
        "conf": {"day": "2013-01-05"},
        "project": str(folder / "project"),
        "environment": {"LAKEHOUSE_ROOT": str(folder / "lake")},
    }
    with running_collector() as collector, socket.create_server(("127.0.0.1", 0)) as server:
        connection = {"conn_type": "spark", "host": "sc://127.0.0.1", "port": server.getsockname()[1]}
        environment = {
            **create_airflow_home(folder / "airflow", dags),
            "PYTHONPATH": os.pathsep.join((str(PROJECT), str(PROJECT / "plugins"))),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({**connection, "password": PASSWORD}),
            "AIRFLOW__OPENLINEAGE__TRANSPORT": collector.transport(),
            "AIRFLOW__OPENLINEAGE__NAMESPACE": NAMESPACE,
            "LAKEHOUSE_LANDING": str(folder / "landing"),
            "LAKEHOUSE_TABLES": str(tables),
        }
        command = [sys.executable, str(SCRIPT), json.dumps({"run": case})]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        # Airflow sends the event of a run from a process of its own, which may log after the results.
        results = json.loads(done.stdout.rpartition(MARK)[2].partition("\n")[0])
        yield Run(results["run"], done.stdout, collector, folder)


def test_each_event_fits_the_schema_of_openlineage(run: Run) -> None:
    events = run.collector.events
    assert len(events) >= 16
    assert {name for event in events for name in facets_of(event)} == {
        "columnLineage", "dataQualityAssertions", "dataQualityMetrics", "documentation", "inputStatistics",
        "outputStatistics", "ownership", "schema", "storage", "symlinks", "tags", "version",
    }  # fmt: skip
    assert [problem for event in events for problem in problems_of(event)] == []
    broken = {**events[1], "eventType": "DONE", "outputs": [{"namespace": "file"}]}
    assert len(problems_of(broken)) == 2


def test_a_writer_reports_its_source_and_its_table_with_columns_version_and_counts(run: Run) -> None:
    end = run.end("bronze.orders")
    assert (end["eventType"], end["job"]["namespace"]) == ("COMPLETE", NAMESPACE)
    [[source], [table]] = end["inputs"], end["outputs"]
    assert (source["namespace"], source["name"]) == ("file", str(run.folder / "landing" / "orders"))
    assert facts(source["inputFacets"]["inputStatistics"]) == {"rowCount": 5, "fileCount": 1}
    assert (table["namespace"], table["name"]) == run.table("bronze.orders")
    files = list(Path(table["name"]).glob("*.parquet"))
    sizes = {"size": sum(file.stat().st_size for file in files), "fileCount": len(files)}
    assert facts(table["outputFacets"]["outputStatistics"]) == {"rowCount": 3, **sizes}
    assert table["facets"]["version"]["datasetVersion"] == "1"
    assert table["facets"]["symlinks"]["identifiers"][0]["name"] == "bronze.orders"
    assert table["facets"]["documentation"]["description"] == "Orders as delivered."
    assert table["facets"]["ownership"]["owners"][0]["name"] == "team:sales"
    assert [field["name"] for field in table["facets"]["schema"]["fields"]][:2] == ["order_id", "amount"]
    [origin] = table["facets"]["columnLineage"]["fields"]["amount"]["inputFields"]
    assert (origin["name"], origin["field"]) == (source["name"], "amount")


def test_a_layer_reads_what_the_layer_below_has_written_under_the_same_name(run: Run) -> None:
    for below, table in (("bronze.orders", "silver.orders"), ("silver.orders", "gold.revenue_daily")):
        [source] = run.end(table)["inputs"]
        [written] = run.end(below)["outputs"]
        [checked] = run.end(f"{below}_gate")["inputs"]
        names = [(dataset["namespace"], dataset["name"]) for dataset in (source, written, checked)]
        assert names == [run.table(below)] * 3
        assert source["facets"]["version"]["datasetVersion"] == "1"


def test_a_gold_column_has_the_type_that_it_has_in_the_version(run: Run) -> None:
    [written] = run.end("gold.revenue_daily")["outputs"]
    [checked] = run.end("gold.revenue_daily_gate")["inputs"]
    for table in (written, checked):
        types = {field["name"]: field.get("type") for field in table["facets"]["schema"]["fields"]}
        assert types == {"day": None, "amount": "long"}, "the table of this test has no day"


def test_a_gate_reports_the_result_of_each_rule(run: Run) -> None:
    for table_name, kind, success in (("bronze.orders", "COMPLETE", True), ("gold.revenue_daily", "FAIL", False)):
        end = run.end(f"{table_name}_gate")
        assert end["eventType"] == kind
        [table] = end["inputs"]
        [assertion] = table["inputFacets"]["dataQualityAssertions"]["assertions"]
        assert (assertion["assertion"], assertion["success"]) == ("expect_table_row_count_to_be_between", success)
        assert (assertion["severity"], assertion["description"]) == ("error", "no empty days")
        assert table["inputFacets"]["dataQualityMetrics"]["rowCount"] == 0
        assert table["facets"]["version"]["datasetVersion"] == "1"
    error = end["run"]["facets"]["errorMessage"]["message"]
    assert error.startswith("gold.revenue_daily version 1 refused: expect_table_row_count_to_be_between() observed 0")


def test_an_error_in_the_facets_fails_no_task_and_is_logged(run: Run) -> None:
    assert run.results["tasks"]["optimize"] == ["success", 1]
    end = run.end("optimize")
    assert (end["eventType"], end["inputs"], end["outputs"]) == ("COMPLETE", [], [])
    assert "OpenLineage method failed to extract data from Operator" in run.log
    assert "bronze.unknown" in run.log
    sensor = run.end("bronze.orders.files")
    assert (sensor["eventType"], sensor["inputs"], sensor["outputs"]) == ("COMPLETE", [], [])


def test_no_event_has_a_row_or_a_secret(run: Run) -> None:
    assert run.collector.refused == 0, "each event has the key"
    sent = json.dumps(run.collector.events)
    assert "bronze.orders" in sent
    assert [secret for secret in (ROW_VALUE, PASSWORD, KEY) if secret in sent] == []


def facts(facet: dict[str, Any]) -> dict[str, Any]:
    """Return a facet without its producer and its schema."""
    return {name: value for name, value in facet.items() if not name.startswith("_")}

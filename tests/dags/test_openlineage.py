"""What a collector of OpenLineage receives from the tasks of a domain, run by Airflow's task runner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.airflow.shop_runs import DAY, PASSWORD, ROW_VALUE, Case, new_airflow
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.openlineage.collector import KEY, Collector, running_collector
from tests.support.openlineage.schemas import facets_of, problems_of

NAMESPACE = "millrace-tests"

DAG_FILE = """
from datetime import UTC, datetime

from millrace.contracts.job.args import Job
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
from millrace.catalog import load_catalog
from millrace.control.gates.gates import Gates
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import BatchSources
from millrace.contracts.job.args import JobArgs
from millrace.contracts.job.report import JobReport, RowCounts
from millrace.contracts.spec.table_spec import BronzeSpec, GoldSpec
from millrace.errors import Outcome
from millrace.paths import LakehousePaths
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

    def __init__(self, results: dict[str, Any], collector: Collector, folder: Path) -> None:
        self.results = results
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
        return "file", str(self.folder / "lakes" / "one" / Path(*table.split(".")))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    rule = {"expect_table_row_count_to_be_between": {"min_value": 1}, "action": "fail", "reason": "no empty days"}
    documents = (
        bronze_document(expectations=[rule], description="Orders as delivered.", owner="sales"),
        silver_document(expectations=[rule]),
        gold_document(expectations=[rule], measures={"amount": "sum(o.amount)"}),
    )
    with running_collector() as collector:
        variables = {
            "AIRFLOW__OPENLINEAGE__TRANSPORT": collector.transport(),
            "AIRFLOW__OPENLINEAGE__NAMESPACE": NAMESPACE,
        }
        with new_airflow(tmp_path_factory.mktemp("openlineage"), *documents, **variables) as airflow:
            started = airflow.start({"run": Case("one", JOB, DAY, "2013-02-01")}, {"shop": DAG_FILE})
            yield Run(airflow.results(started)["run"], collector, airflow.folder)


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
    assert "OpenLineage method failed to extract data from Operator" in run.results["log"]
    assert "bronze.unknown" in run.results["log"]
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

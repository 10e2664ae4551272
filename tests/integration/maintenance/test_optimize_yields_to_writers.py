"""OPTIMIZE yields to batches that wait for its table, and keeps what it has committed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from embedded.airflow.standalone import clean_environment
from embedded.spark.server import SparkServer
from millrace.cli.runs.driver import run_job
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.lake_path import LakePath
from millrace.control.leases.leases import Leases
from millrace.control.ledger.commit_history import CommitHistory
from millrace.control.log.delta_log import commits_after, latest_version
from millrace.control.storage.objects import LocalObjectStore
from millrace.errors import Outcome
from millrace.settings import Settings
from millrace_spark.delta_io.maintenance import optimize
from millrace_spark.delta_io.tables import sql_path
from millrace_spark.jobs import table_optimize
from millrace_spark.layers.maintenance.yield_to_writers import MAX_YIELDS
from tests.support.documents.specs import bronze_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

TABLE, OPTIMIZE_DAY, BATCH_DAY = "bronze.orders", 1, 3
DAYS = 40
IN_SMALL_COMMITS = {
    # A commit a day, one after the other: there is always one to stop between.
    "spark.databricks.delta.optimize.batchSize": "1k",
    "spark.databricks.delta.optimize.maxThreads": "1",
}


@pytest.fixture(scope="module")
def made(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Lakehouse:
    """A table of 40 days with two small files each: OPTIMIZE is at it for a while."""
    made = Lakehouse(tmp_path_factory.mktemp("days"))
    made.specs(bronze_document(partitioned_by=["day"], conflicts={"wait_for_lease": "120 seconds"}))
    given(made, TABLE, [order(1, 1)])
    table = str(made.paths.table(TABLE))
    [row] = DeltaTable(table).to_pyarrow_table().to_pylist()
    days = [date(2012, 1, 1) + timedelta(days=number) for number in range(DAYS)]
    for _twice in range(2):
        rows = [{**row, "day": day} for day in days]
        write_deltalake(table, pa.Table.from_pylist(rows, DeltaTable(table).to_pyarrow_table().schema), mode="append")
    assert len(DeltaTable(table).file_uris()) == 2 * DAYS + 1
    return made


@pytest.fixture
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    real = table_optimize.optimize_conf
    monkeypatch.setattr(table_optimize, "optimize_conf", lambda size: {**real(size), **IN_SMALL_COMMITS})


@pytest.fixture
def until_a_batch_waits(shop: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPTIMIZE does five days, and the rest once a batch waits."""
    leases = Leases(LocalObjectStore(shop.paths.leases), "the test")
    at_first = latest_version(shop.paths.table(TABLE))

    def a_part_first(session: SparkSession, path: LakePath, columns: Sequence[str]) -> None:
        if latest_version(path) == at_first:
            session.sql(f"OPTIMIZE {sql_path(path)} WHERE day < DATE '2012-01-06'").collect()
            wait_for(lambda: leases.waiting_batches(TABLE))
        optimize(session, path, columns)

    monkeypatch.setattr(table_optimize, "optimize", a_part_first)


@pytest.mark.usefixtures("small_commits", "until_a_batch_waits")
def test_optimize_yields_to_a_batch_and_rewrites_no_file_twice(shop: Lakehouse) -> None:
    table = shop.paths.table(TABLE)
    at_first = latest_version(table)

    def load() -> JobReport:
        wait_for(lambda: latest_version(table) > at_first)
        return given(Lakehouse(shop.folder), TABLE, [order(7, 7, of_day=BATCH_DAY)], BATCH_DAY)

    with ThreadPoolExecutor(1) as threads:
        loading = threads.submit(load)
        report = shop.run(TABLE, OPTIMIZE_DAY, job=Job.TABLE_OPTIMIZE)
        batch = loading.result()

    commits = list(commits_after(table, at_first))
    operations = [commit.operation for commit in commits]
    assert operations.count("WRITE") == 1, operations
    assert 0 < operations.index("WRITE") < len(operations) - 1, "the batch came between two commits of OPTIMIZE"
    assert (report.outcome, batch.outcome) == (Outcome.COMMITTED, Outcome.COMMITTED)
    [asked] = report.details["gave_way_to"]
    assert asked.startswith(f"{batch.run_id} (process ")
    assert asked in report.message
    assert batch.waited_for.startswith(f"{report.run_id} (process ")
    assert batch.waited_s < 10
    assert (batch.lost_races, report.lost_races) == ((), ())
    assert (report.details["numFilesRemoved"], report.details["numFilesAdded"]) == (2 * DAYS, DAYS)
    assert len(shop.rows(TABLE, "order_id")) == 2 * DAYS + 2
    [commit] = [one for one in CommitHistory(shop.paths).of(TABLE) if one.operation == "OPTIMIZE"]
    assert commit.version == latest_version(table)


def in_a_driver_of_its_own(shop: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> JobReport:
    for name in os.environ.keys() - clean_environment().keys():
        monkeypatch.delenv(name)
    report, end = run_job(Settings(), shop.args(TABLE, OPTIMIZE_DAY), Job.TABLE_OPTIMIZE)
    assert report is not None, end.last_lines
    return report


def on_the_warm_server(shop: Lakehouse, _: pytest.MonkeyPatch) -> JobReport:
    return shop.run(TABLE, OPTIMIZE_DAY, job=Job.TABLE_OPTIMIZE)


@pytest.mark.parametrize("run", [in_a_driver_of_its_own, on_the_warm_server])
def test_optimize_ends_also_if_a_batch_always_waits(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch, run: Callable[[Lakehouse, pytest.MonkeyPatch], JobReport]
) -> None:
    over, batches = threading.Event(), Leases(LocalObjectStore(shop.paths.leases), "a run that always comes again")

    def come_again() -> None:
        while not over.wait(0.1):
            with batches.stream(TABLE, "main"):
                pass

    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(come_again)
        report = run(shop, monkeypatch)
        over.set()
        coming.result()
    assert report.outcome is Outcome.COMMITTED, report.message
    assert report.details["gave_way_to"] == ["a run that always comes again"] * MAX_YIELDS
    assert len(DeltaTable(str(shop.paths.table(TABLE))).file_uris()) == DAYS + 1


def test_an_optimize_that_fails_while_nobody_waits_has_failed(shop: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def broken(*_: object) -> None:
        tries.append(threading.get_ident())
        raise OSError("the disk is away")

    monkeypatch.setattr(table_optimize, "optimize", broken)
    report = shop.run(TABLE, OPTIMIZE_DAY, job=Job.TABLE_OPTIMIZE)
    assert (report.outcome, len(tries)) == (Outcome.FAILED, 1)
    assert "the disk is away" in report.message

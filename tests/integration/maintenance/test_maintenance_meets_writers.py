"""Maintenance waits for writers, reports for whom, and repeats a commit that lost to a writer without a lease."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable

from embedded.spark.server import SparkServer
from millrace.contracts.job.args import Job
from millrace.control.leases.leases import Leases
from millrace.control.ledger.commit_history import CommitHistory
from millrace.control.log.delta_log import read_commit
from millrace.control.storage.objects import LocalObjectStore
from millrace.errors import Outcome
from millrace_spark.delta_io.conflict_policy import Conflict
from millrace_spark.jobs import table_optimize, table_vacuum
from tests.support.documents.specs import bronze_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

pytestmark = pytest.mark.slow

TABLE = "bronze.orders"
DAYS = 8
OTHER_SYSTEM = CommitProperties(custom_metadata={"userMetadata": "crm"})


@pytest.fixture(scope="module")
def made(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Lakehouse:
    """Two files a day, for eight days, three orders each."""
    made = Lakehouse(tmp_path_factory.mktemp("many"))
    made.specs(bronze_document(partitioned_by=["day"]))
    for run in (1, 2):
        rows = [order(100 * run + 10 * day + n, 1, of_day=day) for day in range(1, DAYS + 1) for n in range(3)]
        given(made, TABLE, rows, run)
    assert len(data_files(made)) == 2 * DAYS
    return made


def data_files(shop: Lakehouse) -> list[str]:
    return DeltaTable(str(shop.paths.table(TABLE))).file_uris()


def orders(shop: Lakehouse) -> set[str]:
    return {str(row[0]) for row in shop.rows(TABLE, "order_id")}


@contextmanager
def deleting(shop: Lakehouse, doomed: list[str]) -> Any:
    """Somebody who knows no lease deletes an order now and then, until none of the doomed is left."""
    table = str(shop.paths.table(TABLE))

    def delete() -> None:
        for order_id in doomed:
            DeltaTable(table).delete(f"order_id = '{order_id}'", commit_properties=OTHER_SYSTEM)
            time.sleep(0.1)

    thread = threading.Thread(target=delete)
    thread.start()
    yield
    thread.join()


def test_optimize_that_loses_a_race_rewrites_the_newest_files(shop: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    doomed = sorted(orders(shop))[:12]
    kept, real = orders(shop) - set(doomed), table_optimize.optimize

    def overtaken(*args: Any) -> dict[str, Any]:
        if (names := sorted(set(doomed) & orders(shop))) == doomed:
            with deleting(shop, names):
                return real(*args)
        return real(*args)

    monkeypatch.setattr(table_optimize, "optimize", overtaken)
    report = shop.run(TABLE, 2, job=Job.TABLE_OPTIMIZE)

    assert report.outcome is Outcome.COMMITTED, report.message
    assert orders(shop) == kept
    assert len(data_files(shop)) == DAYS
    assert [race.operation for race in report.lost_races] == ["DELETE"]
    [race] = report.lost_races
    assert race.version is not None
    winner = read_commit(shop.paths.table(TABLE), race.version)
    assert winner is not None
    assert (winner.operation, race.run_id, report.attempts) == ("DELETE", "", 2)
    [commit] = [one for one in CommitHistory(shop.paths).of(TABLE) if one.operation == "OPTIMIZE"]
    assert (commit.lost, commit.version, commit.run_id) == ((race,), report.version, report.run_id)


def test_vacuum_that_loses_a_race_deletes_the_same_files(shop: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    left, real = shop.paths.table(TABLE) / "part-of-a-lost-writer.parquet", table_vacuum.vacuum
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    conflicts = [RuntimeError("[DELTA_METADATA_CHANGED] Somebody who knows no lease has set a property.")]

    def overtaken(*args: Any) -> None:
        if conflicts:
            raise conflicts.pop()
        real(*args)

    monkeypatch.setattr(table_vacuum, "vacuum", overtaken)
    report = shop.run(TABLE, 2, job=Job.TABLE_VACUUM)

    assert (report.outcome, left.exists()) == (Outcome.COMMITTED, False), report.message
    assert ([race.conflict for race in report.lost_races], report.attempts) == ([Conflict.METADATA_CHANGED.value], 2)


def test_optimize_waits_for_a_writer_and_says_for_whom(shop: Lakehouse) -> None:
    writer = Leases(LocalObjectStore(shop.paths.leases), "scheduled__2013-01-03 (process 7 on a)")
    with ExitStack() as held:
        held.enter_context(writer.stream(TABLE, "main"))
        ending = threading.Timer(1.5, held.close)
        ending.start()
        report = shop.run(TABLE, 2, job=Job.TABLE_OPTIMIZE)
        ending.join()

    assert report.outcome is Outcome.COMMITTED
    assert report.waited_for == "scheduled__2013-01-03 (process 7 on a)"
    assert report.waited_s > 0.2
    [commit] = [one for one in CommitHistory(shop.paths).of(TABLE) if one.operation == "OPTIMIZE"]
    assert (commit.waited.holders, round(commit.waited.seconds, 3)) == (report.waited_for, report.waited_s)


def test_a_wait_without_success_is_recorded_too(shop: Lakehouse) -> None:
    shop.specs(bronze_document(partitioned_by=["day"], conflicts={"wait_for_lease": "1 seconds"}))
    writer = Leases(LocalObjectStore(shop.paths.leases), "scheduled__2013-01-03 (process 7 on a)")
    with writer.stream(TABLE, "main"):
        optimize = shop.run(TABLE, 2, job=Job.TABLE_OPTIMIZE)
        load = shop.run(TABLE, 2)
    assert [optimize.outcome, load.outcome] == [Outcome.CONFLICT] * 2
    assert "was not free within 1 s: held by scheduled__2013-01-03 (process 7 on a)" in load.message
    commits = CommitHistory(shop.paths).of(TABLE)  # The days that the shop has loaded met no other writer.
    assert [(one.operation, one.version, one.waited.holders) for one in commits] == [
        (operation, None, "scheduled__2013-01-03 (process 7 on a)") for operation in ("OPTIMIZE", "batch")
    ]
    assert {one.waited.seconds for one in commits} == {1.0}

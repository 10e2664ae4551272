"""`lakehouse conflicts`: the runs that slowed each other down."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from millrace.cli.conflicts import advice, count_contentions
from millrace.contracts.job.contention import LeaseWait, LostRace
from millrace.control.ledger.commit_history import CommitHistory, TableWrite
from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import silver_document, write_specs

ORDERS = "silver.orders"
BACKFILL, SCHEDULED = "backfill__2013-01-01", "scheduled__2013-01-02"
RACE = LostRace(conflict="ConcurrentAppendException", operation="MERGE", run_id=SCHEDULED, version=4)


def table_write(run_id: str, waited_s: float = 0.0, holders: str = "", *lost: LostRace) -> TableWrite:
    waited = LeaseWait(seconds=waited_s, holders=holders)
    return TableWrite(ORDERS, run_id, datetime.now(UTC), attempts=1 + len(lost), waited=waited, lost=lost)


@pytest.fixture
def history(settings: Settings) -> CommitHistory:
    write_specs(settings.tables, silver_document())
    return CommitHistory(settings.paths)


def test_it_counts_by_table_and_pair_of_writers(history: CommitHistory, lakehouse: Lakehouse) -> None:
    for write in (
        table_write(BACKFILL, 0.0, "", RACE, RACE),
        table_write(BACKFILL, 40.0, f"{SCHEDULED} (process 7 on a)"),
        table_write(BACKFILL, 30.0, f"{SCHEDULED} (process 8 on a)"),
        table_write(SCHEDULED),
    ):
        history.record(write)
    output = lakehouse("conflicts", "--table", ORDERS).stdout
    waits, races = (line.split() for line in output.splitlines() if line.startswith(f" {ORDERS} "))
    assert waits[:9] == [ORDERS, "backfill", "the", "lease", "of", "scheduled", "-", "2", "70"]
    assert races[:8] == [ORDERS, "backfill", "MERGE", "of", "scheduled", "2", "ConcurrentAppendException", "0"]
    assert f"{ORDERS}: backfill runs wait for scheduled runs: schedule them at different hours" in output


def test_maintenance_is_counted_apart_from_writers(history: CommitHistory, lakehouse: Lakehouse) -> None:
    waited = LeaseWait(seconds=90.0, holders=f"{SCHEDULED} (process 7 on a)")
    history.record(TableWrite(ORDERS, "manual__1", datetime.now(UTC), operation="OPTIMIZE", waited=waited))
    output = lakehouse("conflicts").stdout
    assert f" {ORDERS}   OPTIMIZE of manual   the lease of scheduled " in output
    assert f"{ORDERS}: OPTIMIZE of manual runs wait for scheduled runs" in output


def test_there_is_advice_only_if_a_change_helps() -> None:
    for write, line in (
        (table_write(BACKFILL, 60.0, BACKFILL), "backfill runs wait for each other: let fewer of them run at once"),
        (table_write(BACKFILL, 0.0, "", LostRace(conflict="x", version=3)), "another system writes it too"),
        (table_write(BACKFILL, 59.0, BACKFILL), ""),
        (table_write(BACKFILL, 0.0, "", RACE), ""),
        (table_write(BACKFILL, 0.0, "", LostRace(conflict="x")), ""),
    ):
        assert line in "".join(advice(count_contentions([write])))
        assert bool(line) == bool(advice(count_contentions([write])))


def test_a_damaged_history_stops_no_other(history: CommitHistory, lakehouse: Lakehouse, settings: Settings) -> None:
    history.record(table_write(BACKFILL, 40.0, f"{SCHEDULED} (process 7 on a)"))
    history.record(replace(table_write(BACKFILL), table="bronze.orders"))
    [file] = settings.root.glob("ops/commits/table=bronze.orders/*.parquet")
    for damage in (lambda: file.write_bytes(file.read_bytes()[:-9]), file.unlink):
        damage()
        answer = lakehouse("conflicts")
        assert answer.exit_code == ExitCode.FAILED
        assert f" {ORDERS} " in answer.stdout
        line = f"bronze.orders: {file}, a file of the ledger, cannot be read"
        assert "".join(line.split()) in "".join(answer.stdout.split()), "wherever it was wrapped"

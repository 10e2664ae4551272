"""`lakehouse conflicts`: which runs were in each other's way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.cli.conflicts import advice, count_contentions
from include.contracts.job.contention import LeaseWait, LostRace
from include.control.ledger.commit_history import CommitHistory, TableWrite
from include.errors import ExitCode
from include.paths import LakehousePaths
from tests.support.cli import Lakehouse
from tests.support.documents.specs import silver_document, write_specs

ORDERS = "silver.orders"
BACKFILL, SCHEDULED = "backfill__2013-01-01", "scheduled__2013-01-02"
OTHERS = LostRace(conflict="x", operation="WRITE", version=3)
RACE = LostRace(conflict="ConcurrentAppendException", operation="MERGE", run_id=SCHEDULED, version=4)


def written(run_id: str, waited_s: float = 0.0, holders: str = "", *lost: LostRace) -> TableWrite:
    waited = LeaseWait(seconds=waited_s, holders=holders)
    return TableWrite(ORDERS, run_id, datetime.now(UTC), attempts=1 + len(lost), waited=waited, lost=lost)


@pytest.fixture
def history(place: Mapping[str, str]) -> CommitHistory:
    write_specs(Path(place["LAKEHOUSE_TABLES"]), silver_document())
    return CommitHistory(LakehousePaths(Path(place["LAKEHOUSE_ROOT"])))


@pytest.mark.usefixtures("history")
def test_a_lakehouse_without_contention_says_so(lakehouse: Lakehouse) -> None:
    assert lakehouse("conflicts").stdout.startswith("No run had to wait or retry because of another run.\n")


def test_it_counts_by_table_and_pair_of_writers(history: CommitHistory, lakehouse: Lakehouse) -> None:
    for one in (
        written(BACKFILL, 0.0, "", RACE, RACE),
        written(BACKFILL, 40.0, f"{SCHEDULED} (process 7 on a)"),
        written(BACKFILL, 30.0, f"{SCHEDULED} (process 8 on a)"),
        written(SCHEDULED),
    ):
        history.record(one)
    said = lakehouse("conflicts", "--table", ORDERS).stdout
    waits, races = (line.split() for line in said.splitlines() if line.startswith(f" {ORDERS} "))
    assert waits[:9] == [ORDERS, "backfill", "the", "lease", "of", "scheduled", "-", "2", "70"]
    assert races[:8] == [ORDERS, "backfill", "MERGE", "of", "scheduled", "2", "ConcurrentAppendException", "0"]
    assert f"{ORDERS}: backfill runs wait for scheduled ones: schedule them at different hours" in said


def test_maintenance_is_told_from_writers(history: CommitHistory, lakehouse: Lakehouse) -> None:
    waited = LeaseWait(seconds=90.0, holders=f"{SCHEDULED} (process 7 on a)")
    history.record(TableWrite(ORDERS, "manual__1", datetime.now(UTC), operation="OPTIMIZE", waited=waited))
    said = lakehouse("conflicts").stdout
    assert f" {ORDERS}   OPTIMIZE of manual   the lease of scheduled " in said
    assert f"{ORDERS}: OPTIMIZE of manual runs wait for scheduled ones" in said


def test_an_unknown_table_is_a_wrong_usage(history: CommitHistory, lakehouse: Lakehouse) -> None:
    history.record(written(BACKFILL, 0.0, "", RACE))
    assert lakehouse("conflicts", "--table", "silver.others").exit_code == ExitCode.WRONG_USAGE


@pytest.mark.parametrize(
    ("met", "said"),
    [
        (written(BACKFILL, 60.0, BACKFILL), "backfill runs wait for each other: let fewer of them run at once"),
        (
            written(BACKFILL, 0.0, "", LostRace(conflict="x", operation="WRITE", version=3)),
            "another system writes it too",
        ),
        (written(BACKFILL, 59.0, BACKFILL), ""),
        (written(BACKFILL, 0.0, "", RACE), ""),
        (written(BACKFILL, 0.0, "", LostRace(conflict="x")), ""),
    ],
)
def test_advice_is_given_where_there_is_something_to_change(met: TableWrite, said: str) -> None:
    assert said in "".join(advice(count_contentions([met])))
    assert bool(said) == bool(advice(count_contentions([met])))


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(file.read_bytes()[:-9])])
def test_a_table_whose_history_is_damaged_stops_no_other(
    history: CommitHistory, lakehouse: Lakehouse, place: Mapping[str, str], damage: Callable[[Path], object]
) -> None:
    history.record(written(BACKFILL, 40.0, f"{SCHEDULED} (process 7 on a)"))
    history.record(replace(written(BACKFILL), table="bronze.orders"))
    [file] = Path(place["LAKEHOUSE_ROOT"]).glob("ops/commits/table=bronze.orders/*.parquet")
    damage(file)
    answer = lakehouse("conflicts")
    assert answer.exit_code == ExitCode.FAILED
    assert f" {ORDERS} " in answer.stdout
    told = f"bronze.orders: {file}, a file of the ledger, cannot be read"
    assert "".join(told.split()) in "".join(answer.stdout.split()), "wherever it was wrapped"

"""A week of real flights with truncates, and with nulls in its events: in any order, what the source says last."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

from demo.oracle.definitions import BRONZE_COLUMNS, SILVER_FLIGHTS
from demo.oracle.expected import Oracle, expected_tables
from demo.source_system import lay_out
from include.settings import PROJECT
from tests.support.documents.specs import write_specs
from tests.support.lakehouse import Lakehouse

pytestmark = pytest.mark.faults
WEEK = (date(2013, 1, 1), date(2013, 1, 8))
DAYS = range(1, 8)
BRONZE = "bronze.flight_events"
FILLED = ("tailnum", "dep_at", "dep_delay_min", "arr_delay_min", "air_time_min", "distance_miles")
"""Columns that a flight need not have; a null of an event takes one of them away, or leaves it as it was."""

TRUNCATES = {
    1: ["2013-01-01T15:00:00Z"],
    3: ["2013-01-02T23:59:00Z", "2013-01-03T12:00:00Z"],
    4: ["2013-01-03T12:00:00Z"],
    6: ["2013-01-04T06:00:00Z"],
}
"""The day that delivers it -> when it happened. The last one comes two days late."""

TABLES: dict[str, dict[str, Any]] = {
    "silver.flights": {},
    "silver.truncated_flights": {"apply_as_truncates": "op = 'truncate'", "max_deleted_percent": 100},
    "silver.filled_flights": {"ignore_null_updates": True},
}
LAST = SILVER_FLIGHTS.replace("FROM bronze.flight_events", "FROM bronze.flight_events WHERE op <> 'truncate'")
ALL_ORDER = "(event_at, event_seq)"


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The landing files of a week, in which one event in four says null where it knew a value, and some truncate."""
    folder = tmp_path_factory.mktemp("week") / "landing"
    lay_out(folder, *WEEK)
    for number in DAYS:
        for file in (folder / "flight_events" / f"date=2013-01-{number:02d}").glob("*.gz"):
            events = [with_nulls(json.loads(line)) for line in gzip.decompress(file.read_bytes()).splitlines()]
            told = [*events, *(truncate(at) for at in TRUNCATES.get(number, []))]
            file.write_bytes(gzip.compress("".join(f"{json.dumps(event)}\n" for event in told).encode()))
    return folder


def with_nulls(event: dict[str, Any]) -> dict[str, Any]:
    """An event without some of its values, always the same ones: its copies stay copies."""
    chance = Random(f"{event['flight_id']} {event['event']}")
    lost = [name for name in FILLED if chance.random() < 0.5] if chance.random() < 0.25 else []
    return {**event, **dict.fromkeys(lost)}


def truncate(at: str) -> dict[str, Any]:
    return {**dict.fromkeys(BRONZE_COLUMNS[BRONZE]), "op": "truncate", "event_at": at, "event_seq": 1}


@pytest.fixture(scope="module")
def oracle(landing: Path) -> Oracle:
    """What the tables must hold, worked out by DuckDB from the same files."""
    oracle = expected_tables(landing, *WEEK)
    run = oracle.connection.execute
    run(f"CREATE OR REPLACE TABLE silver.flights AS {LAST}")
    columns = oracle.connection.table("silver.flights").columns
    last = f"(SELECT max({ALL_ORDER}) FROM bronze.flight_events WHERE op = 'truncate')"
    run(f"CREATE TABLE silver.truncated_flights AS FROM silver.flights WHERE {ALL_ORDER} > {last}")
    values = ", ".join(
        f"arg_max({name}, {ALL_ORDER}) FILTER (WHERE {name} IS NOT NULL) AS {name}" for name in columns[1:]
    )
    run(
        f"CREATE TABLE silver.filled_flights AS SELECT flight_id, {values} FROM bronze.flight_events "
        "WHERE op <> 'truncate' GROUP BY flight_id"
    )
    return oracle


def state_tables(lakehouse: Lakehouse) -> None:
    """The specs of Millrace, and beside silver's flights the two tables that read the same events otherwise."""
    shutil.rmtree(lakehouse.folder / "tables")
    shutil.copytree(PROJECT / "include" / "tables", lakehouse.folder / "tables")
    flights = yaml.safe_load((PROJECT / "include/tables/silver/flights/flights.yaml").read_text())
    copies = ({**flights, **stated, "table": table} for table, stated in TABLES.items() if stated)
    write_specs(lakehouse.folder / "tables", *copies, domain="flights")


def test_any_order_of_days_with_repetitions_ends_in_the_tables_of_the_source(
    lakehouse: Lakehouse, landing: Path, oracle: Oracle
) -> None:
    random = Random(2)
    state_tables(lakehouse)
    lakehouse.landing = str(landing)
    days = [*DAYS, *random.sample(DAYS, 2)]
    random.shuffle(days)
    for number in days:
        lakehouse.run(BRONZE, number)
        lakehouse.run_all(number, *(table for table in TABLES if random.random() < 0.5))
    lakehouse.run_all(days[-1], *TABLES)
    assert days != sorted(days), "the days came in another order than they should"
    failed = [report.message for report in lakehouse.reports if report.exit_code or not report.rows.are_conserved]
    assert failed == []
    for table in TABLES:
        found = DeltaTable(str(lakehouse.paths.table(table))).to_pyarrow_table()
        comparison = oracle.compare(table, found)
        assert comparison.equal, comparison
    sizes = [oracle.count(table) for table in TABLES]
    assert sizes[0] == sizes[2] > sizes[1] > 0, "truncates took some flights away"
    assert not oracle.compare("silver.filled_flights", as_arrow(lakehouse, "silver.flights")).equal, "nulls were filled"
    refused = [len(lakehouse.quarantine(table)) for table in TABLES]
    wrong = 2 * sum(map(len, TRUNCATES.values()))
    assert refused == [wrong, 0, wrong], "a truncate has no key, and stands in quarantine where it is none"


def as_arrow(lakehouse: Lakehouse, table: str) -> Any:
    return DeltaTable(str(lakehouse.paths.table(table))).to_pyarrow_table()

"""A week of real flights, weather and planes: whatever the order of the days, all tables end as the source says."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from demo.oracle.definitions import BRONZE_COLUMNS, DEFINITIONS
from demo.oracle.expected import Oracle, expected_tables
from demo.source_system import lay_out
from include.settings import PROJECT
from tests.support.lakehouse import Lakehouse

pytestmark = pytest.mark.faults
WEEK = (date(2013, 1, 1), date(2013, 1, 8))
DAYS = range(1, 8)
SILVER, GOLD = ([table for table in DEFINITIONS if table.startswith(layer)] for layer in ("silver", "gold"))


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The landing files of a week, with events that come a day late and events that come twice."""
    folder = tmp_path_factory.mktemp("week") / "landing"
    lay_out(folder, *WEEK)
    return folder


@pytest.fixture(scope="module")
def oracle(landing: Path) -> Oracle:
    """What the tables must hold, worked out by DuckDB from the same files."""
    return expected_tables(landing, *WEEK)


@pytest.mark.timeout(1200)
def test_any_order_of_days_with_repetitions_ends_in_the_tables_of_the_source(
    lakehouse: Lakehouse, landing: Path, oracle: Oracle
) -> None:
    random = Random(1)
    shutil.rmtree(lakehouse.folder / "tables")
    shutil.copytree(PROJECT / "include" / "tables", lakehouse.folder / "tables")
    lakehouse.landing = str(landing)
    days = [*DAYS, *random.sample(DAYS, 2)]
    random.shuffle(days)
    for number in days:
        lakehouse.run_all(number, *BRONZE_COLUMNS)
        if random.random() < 0.6:
            lakehouse.run_all(number, *SILVER)
            lakehouse.run_all(number, *random.sample(GOLD, random.randrange(len(GOLD) + 1)))
    lakehouse.run_all(days[-1], *SILVER, *GOLD)
    assert days != sorted(days), "the days came in another order than they should"
    failed = [report.message for report in lakehouse.reports if report.exit_code or not report.rows.are_conserved]
    assert failed == []
    for table in DEFINITIONS:
        found = DeltaTable(str(lakehouse.paths.table(table))).to_pyarrow_table()
        comparison = oracle.compare(table, found)
        assert comparison.equal, comparison
        assert comparison.actual_rows > 0

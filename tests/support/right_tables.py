"""Check that the flights' tables have the rows of their source."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from demo.oracle import expected_tables
from demo.outcome import outcomes
from millrace.settings import Settings

TABLES = 8


def assert_rows_of_source(settings: Settings, first: date, last: date) -> None:
    """Check that every table has the rows of the days `first` to `last`, which DuckDB alone computes."""
    oracle = expected_tables(Path(settings.landing), first, last + timedelta(days=1))
    results = outcomes(settings.root, oracle, [], oracle.counts())
    assert len(results) == TABLES
    assert all(result.expected_rows for result in results)
    assert {result.facts.table: result.wrong for result in results if result.wrong} == {}

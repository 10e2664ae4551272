"""Whether the flights' tables hold what their source calls for."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from demo.oracle import work_out
from demo.outcome import outcomes
from include.settings import Settings

TABLES = 8


def assert_tables_hold(settings: Settings, first: date, last: date) -> None:
    """Every table holds what the source delivered from `first` to `last`, as DuckDB works it out by itself."""
    oracle = work_out(Path(settings.landing), first, last + timedelta(days=1))
    found = outcomes(settings.root, oracle, [], oracle.counts())
    assert len(found) == TABLES
    assert all(one.expected_rows for one in found)
    assert {one.facts.table: one.wrong for one in found if one.wrong} == {}

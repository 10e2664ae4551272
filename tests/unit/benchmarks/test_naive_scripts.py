"""N's scripts fit the tables that they are compared with. That they run is seen by every run of the benchmarks."""

from __future__ import annotations

import duckdb

from benchmarks.naive import bronze, gold, silver
from include.catalog import load_catalog
from include.contracts.spec.table_spec import BronzeSpec, GoldSpec
from include.settings import PROJECT


def test_n_reads_and_groups_by_the_columns_of_the_specs() -> None:
    catalog = load_catalog(PROJECT / "include" / "tables")
    read, grouped = catalog.spec("bronze.flight_events"), catalog.spec("gold.route_performance_daily")
    assert isinstance(read, BronzeSpec)
    assert isinstance(grouped, GoldSpec)
    stated = dict(part.split() for part in bronze.SCHEMA.strip().split(","))
    assert stated == {name: column.type for name, column in read.columns.items()}
    assert {*grouped.measures, *grouped.group_by} <= set(gold.load.__code__.co_consts)


def test_n_prefers_the_later_event_by_time_then_by_sequence() -> None:
    for s, t in (((1, 1), (1, 1)), ((1, 2), (1, 1)), ((1, 1), (1, 2)), ((2, 1), (1, 2)), ((1, 2), (2, 1))):
        rows = f"(VALUES {s}) s(event_at, event_seq), (VALUES {t}) t(event_at, event_seq)"
        assert duckdb.sql(f"SELECT {silver.NEWER} FROM {rows}").fetchall() == [(s > t,)]

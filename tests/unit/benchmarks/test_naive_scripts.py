"""N's scripts fit the tables that they are compared with. That they run is seen by every run of the benchmarks."""

from __future__ import annotations

import duckdb

from benchmarks.naive import bronze, gold, silver
from include.catalog import load_catalog
from include.contracts.spec.table_spec import BronzeSpec, GoldSpec
from include.settings import PROJECT


def test_n_reads_the_columns_of_the_spec_with_their_types() -> None:
    spec = load_catalog(PROJECT / "include" / "tables").spec("bronze.flight_events")
    assert isinstance(spec, BronzeSpec)
    stated = dict(part.split() for part in bronze.SCHEMA.strip().split(","))
    assert stated == {name: column.type for name, column in spec.columns.items()}


def test_n_prefers_the_later_event_by_time_then_by_sequence() -> None:
    pairs = [((1, 1), (1, 1)), ((1, 2), (1, 1)), ((1, 1), (1, 2)), ((2, 1), (1, 2)), ((1, 2), (2, 1))]
    assert [is_newer(s, t) for s, t in pairs] == [s > t for s, t in pairs]


def is_newer(s: tuple[int, int], t: tuple[int, int]) -> bool:
    rows = f"(VALUES {s}) s(event_at, event_seq), (VALUES {t}) t(event_at, event_seq)"
    return bool(duckdb.sql(f"SELECT {silver.NEWER} FROM {rows}").fetchall()[0][0])


def test_n_groups_gold_by_the_columns_of_the_spec() -> None:
    spec = load_catalog(PROJECT / "include" / "tables").spec("gold.route_performance_daily")
    assert isinstance(spec, GoldSpec)
    source = gold.load.__code__.co_consts
    assert set(spec.measures) <= set(source)
    assert set(spec.group_by) <= set(source)

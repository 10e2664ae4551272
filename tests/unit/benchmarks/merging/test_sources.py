"""Two sources of one silver table of orders."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from benchmarks.merging import by_spark
from benchmarks.merging.orders import CHANGED, COLUMNS, LOADED, SILVER
from benchmarks.merging.sources import COUNTRIES, deliver_sources, name_of, write_source_specs
from benchmarks.series.writing.sources_at_once import DAYS
from include.catalog import load_catalog
from include.contracts.spec.table_spec import SilverSpec
from include.control.log.streams import in_turn, streams_of

ROWS, CHANGES = 10_000, 2_000


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing")
    deliver_sources(folder, ROWS, CHANGES)
    return folder


@pytest.mark.parametrize("source", COUNTRIES)
def test_a_source_changes_known_orders_and_delivers_new_ones_of_its_own_countries(landing: Path, source: str) -> None:
    first, second = (f"read_parquet('{landing}/{name_of(source)}/date={day}/*.parquet')" for day in (LOADED, CHANGED))
    facts = "count(*), count(DISTINCT (s.country, s.id)), count(f.ts), count_if(s.ts > f.ts AND s.md5 <> f.md5)"
    joined = f"{second} s LEFT JOIN {first} f USING (country, id)"
    assert duckdb.sql(f"SELECT {facts} FROM {joined}").fetchall() == [(CHANGES, CHANGES, 1_800, 1_800)]
    counted = duckdb.sql(f"SELECT country, count(*) FROM {first} GROUP BY ALL ORDER BY ALL").fetchall()
    assert counted == [(country, ROWS / 2) for country in COUNTRIES[source]]


def test_the_two_drivers_of_a_table_with_streams_begin_at_different_sources(tmp_path: Path) -> None:
    spec = load_catalog(write_source_specs(tmp_path, concurrent=True)).spec(SILVER)
    assert isinstance(spec, SilverSpec)
    first = {in_turn(streams_of(spec), datetime.fromisoformat(day))[0].name for day in DAYS.values()}
    assert first == {*COUNTRIES}


@pytest.mark.parametrize("concurrent", [True, False])
def test_all_sides_merge_the_same_columns_into_the_same_partitions(tmp_path: Path, *, concurrent: bool) -> None:
    spec = load_catalog(write_source_specs(tmp_path, concurrent=concurrent)).spec(SILVER)
    assert isinstance(spec, SilverSpec)
    assert len(streams_of(spec)) == (2 if concurrent else 1)
    assert spec.stored_columns == tuple(COLUMNS) == by_spark.COLUMNS
    assert spec.partitioned_by == ("country",)

"""Orders and what happens to them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from benchmarks.merging.orders import (
    BATCH,
    BRONZE,
    COLUMNS,
    INSERTS,
    SILVER,
    UPDATES,
    Kind,
    arrivals,
    batch,
    write_specs,
)
from benchmarks.naive import orders as naive
from include.catalog import load_catalog
from include.contracts.spec.table_spec import BronzeSpec, SilverSpec

ROWS = 50_000


@pytest.mark.parametrize(
    ("kind", "known", "changed"),
    [(Kind.RECENT, UPDATES, UPDATES), (Kind.UNIFORM, UPDATES, UPDATES), (Kind.UNCHANGED, BATCH, 0)],
)
def test_a_batch_has_as_many_known_and_changed_orders_as_the_figures_say(kind: Kind, known: int, changed: int) -> None:
    assert UPDATES + INSERTS == BATCH
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        joined = f"({batch(kind, ROWS)}) b LEFT JOIN ({arrivals(ROWS)}) k USING (id)"
        facts = "count(*), count(DISTINCT id), count(k.ts), count_if(b.ts > k.ts AND b.md5 <> k.md5)"
        assert connection.execute(f"SELECT {facts} FROM {joined}").fetchall() == [(BATCH, BATCH, known, changed)]


def test_the_specs_are_right_and_hold_what_both_sides_merge(tmp_path: Path) -> None:
    catalog = load_catalog(write_specs(tmp_path))
    bronze, silver = catalog.spec(BRONZE), catalog.spec(SILVER)
    assert isinstance(bronze, BronzeSpec)
    assert isinstance(silver, SilverSpec)
    assert set(bronze.columns) == {*COLUMNS, "op"}
    assert silver.stored_columns == tuple(COLUMNS) == naive.COLUMNS

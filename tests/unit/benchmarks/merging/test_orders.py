"""Orders and what happens to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from benchmarks.merging.orders import (
    BATCH,
    BRONZE,
    CHANGED,
    COLUMNS,
    INSERTS,
    SILVER,
    UPDATES,
    Kind,
    arrivals,
    batch,
    deliver,
    write_specs,
)
from benchmarks.naive import orders as naive
from include.catalog import load_catalog
from include.contracts.spec.table_spec import BronzeSpec, SilverSpec

ROWS = 50_000


@pytest.fixture(scope="module")
def orders() -> Iterator[duckdb.DuckDBPyConnection]:
    """A table `known` of orders as they arrive."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE known AS {arrivals(ROWS)}")
        yield connection


def one(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[object, ...]:
    [row] = connection.execute(sql).fetchall()
    return tuple(row)


def test_orders_have_even_numbers_in_the_order_of_their_arrival(orders: duckdb.DuckDBPyConnection) -> None:
    facts = "count(*), count(DISTINCT id), min(id), max(id), bool_and(id % 2 = 0), corr(id, epoch_ms(ts)) > 0.9999"
    assert one(orders, f"SELECT {facts} FROM known") == (ROWS, ROWS, 2, 2 * ROWS, True, True)


def test_the_same_orders_arrive_each_time(orders: duckdb.DuckDBPyConnection) -> None:
    assert one(orders, f"SELECT count(*) FROM (FROM known EXCEPT ({arrivals(ROWS)}))") == (0,)


@pytest.mark.parametrize("kind", [Kind.RECENT, Kind.UNIFORM])
def test_four_fifths_of_a_batch_change_known_orders(orders: duckdb.DuckDBPyConnection, kind: Kind) -> None:
    joined = f"({batch(kind, ROWS)}) b LEFT JOIN known k USING (id)"
    facts = "count(*), count(DISTINCT id), count(k.ts), count_if(b.ts > k.ts AND b.md5 <> k.md5)"
    assert one(orders, f"SELECT {facts} FROM {joined}") == (BATCH, BATCH, UPDATES, UPDATES)
    assert one(orders, f"SELECT count_if(k.ts IS NULL) FROM {joined}") == (INSERTS,)


def test_recent_events_are_about_the_last_orders(orders: duckdb.DuckDBPyConnection) -> None:
    least, greatest = one(orders, f"SELECT min(id), max(id) FROM ({batch(Kind.RECENT, ROWS)})")
    assert (least, greatest) == (2 * (ROWS - 2 * (UPDATES - 1)), 2 * (ROWS + INSERTS))


def test_uniform_events_are_about_orders_of_every_part_of_the_table(orders: duckdb.DuckDBPyConnection) -> None:
    counted = f"SELECT count(*) AS events FROM ({batch(Kind.UNIFORM, ROWS)}) GROUP BY (id - 1) * 10 // {2 * ROWS}"
    parts, least, greatest = one(orders, f"SELECT count(*), min(events), max(events) FROM ({counted})")
    assert (parts, least, greatest) == (10, BATCH // 10, BATCH // 10)


def test_an_unchanged_batch_says_again_what_is_known(orders: duckdb.DuckDBPyConnection) -> None:
    again = batch(Kind.UNCHANGED, ROWS)
    assert one(orders, f"SELECT count(*), count(DISTINCT id) FROM ({again})") == (BATCH, BATCH)
    assert one(orders, f"SELECT count(*) FROM (({again}) EXCEPT FROM known)") == (0,)


def test_a_delivery_is_written_once_in_files_of_consecutive_orders(
    orders: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    for number in (1_000, 10):  # the second one changes nothing
        deliver(tmp_path, CHANGED, arrivals(number), files=4)
    found = f"'{tmp_path}/orders/date={CHANGED}/*.parquet', hive_partitioning = false"
    assert one(orders, f"SELECT count(*) FROM (FROM read_parquet({found}) EXCEPT FROM known)") == (0,)
    ranges = (
        f"SELECT count(*) AS n, max(id) - min(id) AS span FROM read_parquet({found}, filename = true) GROUP BY filename"
    )
    assert one(orders, f"SELECT count(*), min(n), max(n), max(span) FROM ({ranges})") == (4, 250, 250, 498)


def test_the_specs_are_right_and_hold_what_both_sides_merge(tmp_path: Path) -> None:
    catalog = load_catalog(write_specs(tmp_path))
    bronze, silver = catalog.spec(BRONZE), catalog.spec(SILVER)
    assert isinstance(bronze, BronzeSpec)
    assert isinstance(silver, SilverSpec)
    assert set(bronze.columns) == {*COLUMNS, "op"}
    assert silver.stored_columns == tuple(COLUMNS) == naive.COLUMNS

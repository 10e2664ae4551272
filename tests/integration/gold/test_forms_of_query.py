"""Queries whose form Spark and sqlglot read differently, on real Delta: each refresh gives what a computation gives."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest
from pyspark.sql import SparkSession

from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import GoldSpec
from millrace_spark.delta_io.reads import read_changes, read_version
from millrace_spark.layers.gold.query import refresh_of_query, rows_of_query, touched_rows_of_query
from millrace_spark.runtime.session import own_session
from tests.support.documents.specs import bronze_document, query_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

SILVER, GOLD = "silver.orders", "gold.last_orders"
PLACE = {"type": "struct<city:string,at:struct<zip:int>>"}
ROME, OSLO, BERN = ({"city": city, "at": {"zip": number}} for number, city in enumerate(("Rome", "Oslo", "Bern"), 1))
DAYS = {
    1: [order(1, 5, 1, place=ROME), order(2, 7, 1), order(3, 9, 13, place=OSLO), order(6, 2, 13, of_day=3, place=BERN)],
    2: [order(4, 8, 1, of_day=2, place=ROME), order(2, 1, 1, 2)],
}


@pytest.fixture
def shop(lakehouse: Lakehouse) -> Lakehouse:
    bronze, silver = bronze_document(), silver_document()
    for document in (bronze, silver):
        document["columns"]["place"] = PLACE
    lakehouse.specs(bronze, silver)
    return lakehouse


def texts(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return sorted rows, of each day or time the day of the month and the hour."""
    return sorted((tuple(f"{v:%d %H}" if isinstance(v, date) else v for v in row) for row in rows), key=repr)


def test_a_row_is_counted_once_in_each_window_of_time(shop: Lakehouse) -> None:
    query = "SELECT window.start AS h, count(*) AS n FROM o GROUP BY window(event_at, '12 hours')"
    shop.specs(query_document(query=query, refresh_by="h"))
    computed = []
    for number, rows in DAYS.items():
        given(shop, SILVER, rows, number)
        computed.append(shop.run_well(number, GOLD).rows.read)
    assert computed == [3, 2]
    assert texts(shop.rows(GOLD, "h", "n")) == [("01 00", 2), ("01 12", 1), ("02 00", 1), ("03 12", 1)]


PIVOTED = "(SELECT day, hour(event_at) AS at, amount FROM o)"
FORMS: dict[str, tuple[str, str, int, list[tuple[Any, ...]]]] = {
    "the largest two orders of each day that changed": (
        "day",
        "SELECT day, order_id, amount FROM o -- the largest\n"
        "QUALIFY row_number() OVER (PARTITION BY day ORDER BY amount DESC, order_id) <= 2;",
        3,
        [("01 00", "o1", 5), ("01 00", "o3", 9), ("02 00", "o4", 8), ("03 00", "o6", 2)],
    ),
    "refreshed by a field of a struct: rows without a place, and those of the changed zip": (
        "zip",
        "SELECT o.place.at.zip AS zip, max(place.city) AS city, count(*) AS n FROM o GROUP BY o.place.at.zip",
        2,
        [(1, "Rome", 2), (2, "Oslo", 1), (3, "Bern", 1), (None, None, 1)],
    ),
    "a pivot is computed for the days that changed": (
        "day",
        f"SELECT day, early, late FROM {PIVOTED} PIVOT (sum(amount) FOR at IN (1 AS early, 13 AS late))",
        2,
        [("01 00", 6, 9), ("02 00", 8, None), ("03 00", None, 2)],
    ),
}
"""What it is -> column of the refresh, query, number of rows that are computed again, all rows."""


def test_a_change_computes_its_values_of_a_query_of_any_form(shop: Lakehouse) -> None:
    for number, orders in DAYS.items():
        given(shop, SILVER, orders, number)
    with own_session({}) as session:
        for name, (column, query, again, rows) in FORMS.items():
            shop.specs(query_document(query=query, refresh_by=column))
            kept, computed = refreshed(session, shop, column)
            assert (texts([*kept, *computed]), len(computed)) == (texts(rows), again), name


def refreshed(session: SparkSession, shop: Lakehouse, column: str) -> tuple[list[Any], list[Any]]:
    """Return the rows that the second day keeps, and those that it computes, as `GoldAggregate` does."""
    spec, path = load_catalog(shop.folder / "tables").spec(GOLD), shop.paths.table(SILVER)
    assert isinstance(spec, GoldSpec)
    before = rows_of_query(session, spec, {"o": read_version(session, path, 1)}).collect()
    now = {"o": read_version(session, path, 2)}
    refresh = refresh_of_query(session, spec, now)
    assert (refresh.columns, refresh.reason, refresh.whole) == ((column,), "", {})
    (key,), changes = refresh.keys["o"], read_changes(session, path, 1, 2)
    assert changes is not None
    touched = [value for (value,) in changes.selectExpr(f"CAST({key} AS STRING)").distinct().collect()]
    computed = touched_rows_of_query(session, spec, now, refresh, touched).collect()
    keys = [None if row[column] is None else str(row[column]) for row in before]
    return [row for row, its in zip(before, keys, strict=True) if its not in touched], computed

"""Lookups of gold on real Delta: after any change of facts and lookups, gold is what a computation from scratch gives.

The sources are written by Spark's SQL and certified here, so that they have what silver tables cannot have: several
rows of a key, and keys without a value. DuckDB computes the expected groups from all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.catalog import load_catalog
from include.contracts.job.report import JobReport
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import open_table
from include.control.planning.planner import Planner
from include.errors import Outcome
from include.settings import Settings
from spark_jobs.delta_io.tables import sql_path
from spark_jobs.runtime.session import own_session
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import day, judge

GOLD = "gold.sales"
COLUMNS = {
    "silver.orders": {"order_id": "int", "day": "date", "product": "string", "amount": "int"},
    "silver.products": {"product": "string", "kind": "string", "price": "int", "is_sold": "boolean"},
    "silver.kinds": {"kind": "string", "least": "int", "label": "string"},
}
"""Of an order its product, of a product its kind; the condition of a kind refers to both."""

PRODUCTS, KINDS, DAYS = (None, "a", "b", "c", "d"), (None, "x", "y", "z"), (None, *range(1, 9))


class Shop:
    """A lakehouse with orders, two lookups and a gold table of them; its rows are changed by SQL."""

    def __init__(self, lakehouse: Lakehouse, session: SparkSession, joins: tuple[str, str]) -> None:
        self.lakehouse = lakehouse
        self.session = session
        self.joins = joins
        for table, columns in COLUMNS.items():
            typed = {name: {"type": kind} for name, kind in columns.items()}
            key, sequence, *_ = columns
            source = table.replace("silver", "bronze")
            of_table = {"source": source, "columns": typed, "keys": [key], "sequence_by": [sequence]}
            lakehouse.specs(bronze_document(source, columns=typed), silver_document(table, **of_table))
        lakehouse.specs(self.document())
        for table, columns in COLUMNS.items():
            listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            self.sql(f"CREATE TABLE {self.place(table)} ({listed}) USING delta {FEED}")

    def document(self, **changes: Any) -> dict[str, Any]:
        sources = {
            "o": {"table": "silver.orders", "where": "amount <> 0"},
            "p": {
                "table": "silver.products",
                "where": "is_sold",
                "join": self.joins[0],
                "on": "p.product = o.product",
                "lookup": True,
            },
            "k": {
                "table": "silver.kinds",
                "join": self.joins[1],
                "on": "k.kind <=> p.kind and o.amount >= k.least",
                "lookup": True,
            },
        }
        measures = {"orders": "count(*)", "priced": "count(p.price)", "total": "sum(o.amount * p.price)"}
        groups = {"day": "o.day", "label": "k.label"}
        refresh = {"refresh_by": "day", "refresh_from": {"o": "day"}}
        return gold_document(GOLD, sources=sources, group_by=groups, measures=measures, **refresh, **changes)

    def place(self, table: str) -> str:
        return sql_path(self.lakehouse.paths.table(table))

    def sql(self, statement: str) -> None:
        self.session.sql(statement).collect()

    def insert(self, table: str, *rows: tuple[Any, ...]) -> None:
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        self.sql(f"INSERT INTO {self.place(table)} VALUES {values}")

    def certify(self) -> None:
        """Certify the newest version of each source."""
        catalog = load_catalog(self.lakehouse.folder / "tables")
        for table in COLUMNS:
            path = self.lakehouse.paths.table(table)
            judge(self.lakehouse.paths.root, catalog.spec(table), latest_version(path))

    def run(self) -> JobReport:
        """Run the gold table on the newest versions."""
        self.certify()
        report = self.lakehouse.run(GOLD)
        assert report.exit_code == 0, report.message
        return report

    def plan(self) -> str:
        """Return what `lakehouse plan` says of a run on the newest versions."""
        self.certify()
        settings = Settings(root=self.lakehouse.paths.root, tables=self.lakehouse.folder / "tables")
        catalog = load_catalog(settings.tables)
        return Planner(catalog, settings).advise(catalog.spec(GOLD), day(1)).message

    def rows(self) -> list[tuple[Any, ...]]:
        return self.lakehouse.rows(GOLD, "day", "label", "orders", "priced", "total")

    def batches(self) -> dict[Any, int]:
        """Return day -> the batch that wrote its groups."""
        return dict(self.lakehouse.rows(GOLD, "day", "_batch_seq"))

    def from_scratch(self) -> list[tuple[Any, ...]]:
        paths = self.lakehouse.paths
        with duckdb.connect() as connection:
            for table in COLUMNS:
                rows = DeltaTable(str(paths.table(table))).to_pyarrow_table()
                connection.register(table.partition(".")[2], rows)
            return sorted(connection.sql(SCRATCH.format(*self.joins)).fetchall(), key=repr)


FEED = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
SCRATCH = """
    SELECT o.day, k.label, count(*), count(p.price), CAST(sum(o.amount * p.price) AS BIGINT)
    FROM (FROM orders WHERE amount <> 0) o
    {} JOIN (FROM products WHERE is_sold) p ON p.product = o.product
    {} JOIN kinds k ON k.kind IS NOT DISTINCT FROM p.kind AND o.amount >= k.least
    GROUP BY ALL
"""


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"DATE'{value}'" if isinstance(value, date) else repr(value)


def date_of(number: int | None) -> date | None:
    return number and date(2013, 1, number)


def random_order(random: Random) -> tuple[Any, ...]:
    return random.randrange(20), date_of(random.choice(DAYS)), random.choice(PRODUCTS), random.randrange(4)


def random_product(random: Random) -> tuple[Any, ...]:
    return random.choice(PRODUCTS), random.choice(KINDS), random.randrange(1, 9), random.random() < 0.8


def random_kind(random: Random) -> tuple[Any, ...]:
    return random.choice(KINDS), random.randrange(3), random.choice(("light", "heavy", None))


def change(shop: Shop, random: Random, table: str) -> None:
    """Insert, update, move or delete some rows."""
    make = {"silver.orders": random_order, "silver.products": random_product, "silver.kinds": random_kind}[table]
    key, *others = COLUMNS[table]
    row = make(random)
    of_key = f"{key} <=> {literal(row[0])}"
    match random.choice(("insert", "update", "move", "delete")):
        case "insert":
            shop.insert(table, row, *(make(random) for _ in range(random.randrange(2))))
        case "update":
            values = ", ".join(f"{name} = {literal(value)}" for name, value in zip(others, row[1:], strict=True))
            shop.sql(f"UPDATE {shop.place(table)} SET {values} WHERE {of_key}")
        case "move":
            shop.sql(f"UPDATE {shop.place(table)} SET {key} = {literal(make(random)[0])} WHERE {of_key}")
        case "delete":
            shop.sql(f"DELETE FROM {shop.place(table)} WHERE {of_key}")


@pytest.fixture
def session(lakehouse: Lakehouse) -> Iterator[SparkSession]:
    with own_session({}) as session:
        yield session


def filled(lakehouse: Lakehouse, session: SparkSession, joins: tuple[str, str]) -> Shop:
    """A shop in which each product but `d` was ordered on a day of its own."""
    shop = Shop(lakehouse, session, joins)
    orders = [(number, date_of(number), name, 2) for number, name in enumerate(("a", "b", "c", None), 1)]
    shop.insert("silver.orders", *orders)
    shop.insert("silver.products", ("a", "x", 5, True), ("b", "y", 7, True), ("d", "x", 9, True), (None, "x", 1, True))
    shop.insert("silver.kinds", ("x", 0, "light"), ("y", 2, "heavy"), (None, 0, "none"))
    shop.run()
    return shop


@pytest.mark.parametrize(
    ("joins", "seed"),
    [
        (("left", "left"), 1),
        pytest.param(("left", "inner"), 2, marks=pytest.mark.slow),
        pytest.param(("inner", "left"), 3, marks=pytest.mark.faults),
    ],
)
def test_after_any_changes_the_groups_are_those_of_a_computation_from_scratch(
    lakehouse: Lakehouse, session: SparkSession, joins: tuple[str, str], seed: int
) -> None:
    random, shop = Random(seed), filled(lakehouse, session, joins)
    assert shop.rows() == shop.from_scratch()
    shop.insert("silver.orders", *(random_order(random) for _ in range(12)))
    kept = 0
    for _ in range(5):
        for table in random.sample(list(COLUMNS), random.choice((1, 1, 2, 3))):
            change(shop, random, table)
        before = shop.batches()
        report = shop.run()
        assert (shop.rows(), report.notes) == (shop.from_scratch(), ())
        after = shop.batches()
        kept += report.outcome is Outcome.COMMITTED and any(after.get(at) == batch for at, batch in before.items())
    assert kept, "some batches leave groups alone"


CHANGES = [
    ("UPDATE {products} SET price = 6 WHERE product = 'a'", {1}),
    ("UPDATE {products} SET product = 'c' WHERE product = 'a'", {1, 3}),
    ("DELETE FROM {products} WHERE product = 'b'", {2}),
    ("INSERT INTO {products} VALUES ('b', 'y', 1, true), ('b', 'x', 2, true)", {2}),
    ("UPDATE {products} SET is_sold = false WHERE product = 'c'", {3}),
    ("UPDATE {products} SET price = 2 WHERE product = 'd' OR product IS NULL", set()),
    ("INSERT INTO {products} VALUES (NULL, 'y', 1, true), ('e', 'y', 1, true)", set()),
    ("UPDATE {kinds} SET least = 9 WHERE kind = 'y'", {2}),
    ("UPDATE {kinds} SET label = 'dark' WHERE kind IS NULL", {1, 3, 4}),
]
"""A change of a lookup -> the days of which the groups are computed again."""


def test_a_changed_row_of_a_lookup_touches_the_days_of_the_facts_that_match_it_or_matched_it(
    lakehouse: Lakehouse, session: SparkSession
) -> None:
    shop = filled(lakehouse, session, ("left", "left"))
    for statement, computed in CHANGES:
        before = shop.batches()
        shop.sql(statement.format(products=shop.place("silver.products"), kinds=shop.place("silver.kinds")))
        shop.run()
        assert shop.rows() == shop.from_scratch()
        assert {at.day for at, batch in shop.batches().items() if batch != before[at]} == computed, statement


def test_without_a_change_feed_the_rows_of_the_files_that_changed_are_traced(
    lakehouse: Lakehouse, session: SparkSession
) -> None:
    shop = filled(lakehouse, session, ("left", "left"))
    products = shop.place("silver.products")
    shop.sql(f"ALTER TABLE {products} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    shop.sql(f"UPDATE {products} SET price = 6 WHERE product = 'a'")
    shop.sql(f"ALTER TABLE {products} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    assert "whole" not in shop.plan()
    before = shop.batches()
    assert shop.run().notes == ()
    assert shop.rows() == shop.from_scratch()
    assert 1 in {at.day for at, batch in shop.batches().items() if batch != before[at]}


def test_what_cannot_be_traced_is_computed_whole_and_the_run_says_why(
    lakehouse: Lakehouse, session: SparkSession
) -> None:
    shop = filled(lakehouse, session, ("left", "left"))
    products, path = shop.place("silver.products"), lakehouse.paths.table("silver.products")
    files = open_table(path).file_uris()
    shop.sql(f"ALTER TABLE {products} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    shop.sql(f"UPDATE {products} SET price = 6 WHERE product = 'a'")
    for file in set(files) - set(open_table(path).file_uris()):
        Path(file).unlink()
    report = shop.run()
    reason = "files of silver.products that have changed since are gone"
    assert (report.notes, report.rows.read) == ((f"{GOLD}: the whole table was computed: {reason}",), 4)
    assert shop.rows() == shop.from_scratch()

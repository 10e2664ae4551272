"""Lookups of gold on real Delta: after any change of facts and lookups, gold is what a computation from scratch gives.

The sources are written as no merge writes them, so that they have what silver tables cannot have: several rows of a
key, and keys without a value. DuckDB computes the expected groups from all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from include.catalog import load_catalog
from include.contracts.job.report import JobReport
from include.control.log.stored_tables import open_table
from include.control.planning.planner import Planner
from include.settings import Settings
from tests.support.documents.specs import gold_document
from tests.support.gold.changed_sources import ChangedSources
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import day
from tests.support.model_database import model_database

GOLD = "gold.sales"
COLUMNS = {
    "silver.orders": {"order_id": "int", "day": "date", "product": "string", "amount": "int"},
    "silver.products": {"product": "string", "kind": "string", "price": "int", "is_sold": "boolean"},
    "silver.kinds": {"kind": "string", "least": "int", "label": "string"},
}
"""Of an order its product, of a product its kind; the condition of a kind refers to both."""

PRODUCTS_TABLE, KINDS_TABLE = "silver.products", "silver.kinds"


class Shop:
    """A lakehouse with orders, two lookups and a gold table of them."""

    def __init__(self, lakehouse: Lakehouse) -> None:
        self.lakehouse = lakehouse
        self.sources = ChangedSources(lakehouse, COLUMNS)
        lakehouse.specs(self.document())

    def document(self) -> dict[str, Any]:
        sources = {
            "o": {"table": "silver.orders", "where": "amount <> 0"},
            "p": {
                "table": "silver.products",
                "where": "is_sold",
                "join": "left",
                "on": "p.product = o.product",
                "lookup": True,
            },
            "k": {
                "table": "silver.kinds",
                "join": "left",
                "on": "k.kind <=> p.kind and o.amount >= k.least",
                "lookup": True,
            },
        }
        measures = {"orders": "count(*)", "priced": "count(p.price)", "total": "sum(o.amount * p.price)"}
        groups = {"day": "o.day", "label": "k.label"}
        refresh = {"refresh_by": "day", "refresh_from": {"o": "day"}}
        return gold_document(GOLD, sources=sources, group_by=groups, measures=measures, **refresh)

    def run(self) -> JobReport:
        """Run the gold table on the newest versions."""
        self.sources.certify()
        report = self.lakehouse.run(GOLD)
        assert report.exit_code == 0, report.message
        return report

    def plan(self) -> str:
        """Return what `lakehouse plan` says of a run on the newest versions."""
        self.sources.certify()
        settings = Settings(root=self.lakehouse.paths.root, tables=self.lakehouse.folder / "tables")
        catalog = load_catalog(settings.tables)
        return Planner(catalog, settings).advise(catalog.spec(GOLD), day(1)).message

    def rows(self) -> list[tuple[Any, ...]]:
        return self.lakehouse.rows(GOLD, "day", "label", "orders", "priced", "total")

    def batches(self) -> dict[Any, int]:
        """Return day -> the batch that wrote its groups."""
        return dict(self.lakehouse.rows(GOLD, "day", "_batch_seq"))

    def computed_days(self) -> set[int]:
        """Run the gold table, which must be right and computed in parts; return the days that were computed."""
        before = self.batches()
        assert self.run().notes == ()
        assert self.rows() == self.from_scratch()
        return {at.day for at, batch in self.batches().items() if batch != before[at]}

    def from_scratch(self) -> list[tuple[Any, ...]]:
        paths = self.lakehouse.paths
        with model_database() as connection:
            for table in COLUMNS:
                rows = DeltaTable(str(paths.table(table))).to_pyarrow_table()
                connection.register(table.partition(".")[2], rows)
            return sorted(connection.sql(SCRATCH).fetchall(), key=repr)


SCRATCH = """
    SELECT o.day, k.label, count(*), count(p.price), CAST(sum(o.amount * p.price) AS BIGINT)
    FROM (FROM orders WHERE amount <> 0) o
    LEFT JOIN (FROM products WHERE is_sold) p ON p.product = o.product
    LEFT JOIN kinds k ON k.kind IS NOT DISTINCT FROM p.kind AND o.amount >= k.least
    GROUP BY ALL
"""


def filled(lakehouse: Lakehouse) -> Shop:
    """A shop in which each product but `d` was ordered on a day of its own."""
    shop = Shop(lakehouse)
    orders = [(number, date(2013, 1, number), name, 2) for number, name in enumerate(("a", "b", "c", None), 1)]
    shop.sources.insert("silver.orders", *orders)
    products = ("a", "x", 5, True), ("b", "y", 7, True), ("d", "x", 9, True), (None, "x", 1, True)
    shop.sources.insert(PRODUCTS_TABLE, *products)
    shop.sources.insert(KINDS_TABLE, ("x", 0, "light"), ("y", 2, "heavy"), (None, 0, "none"))
    shop.run()
    return shop


CHANGES: list[tuple[Callable[[ChangedSources], None], set[int]]] = [
    (lambda lookups: lookups.update(PRODUCTS_TABLE, "product = 'd' OR product IS NULL", price=2), set()),
    (lambda lookups: lookups.insert(PRODUCTS_TABLE, (None, "y", 1, True), ("e", "y", 1, True)), set()),
    (lambda lookups: lookups.update(PRODUCTS_TABLE, "product = 'a'", price=6), {1}),
    (lambda lookups: lookups.update(PRODUCTS_TABLE, "product = 'a'", product="c"), {1, 3}),
    (lambda lookups: lookups.update(KINDS_TABLE, "kind = 'y'", least=9), {2}),
    (lambda lookups: lookups.delete(PRODUCTS_TABLE, "product = 'b'"), {2}),
    (lambda lookups: lookups.update(PRODUCTS_TABLE, "product = 'c'", is_sold=False), {3}),
    (lambda lookups: lookups.insert(PRODUCTS_TABLE, ("b", "y", 1, True), ("b", "x", 2, True)), {2}),
    (lambda lookups: lookups.update(KINDS_TABLE, "kind IS NULL", label="dark"), {1, 3, 4}),
]
"""A change of a lookup -> the days of which the groups are computed again."""
RUNS = (CHANGES[:3], CHANGES[3:5], CHANGES[5:7], CHANGES[7:8], CHANGES[8:])


def test_a_changed_row_of_a_lookup_touches_the_days_of_the_facts_that_match_it_or_matched_it(
    lakehouse: Lakehouse,
) -> None:
    shop = filled(lakehouse)
    assert shop.rows() == shop.from_scratch()
    for number, changes in enumerate(RUNS):
        for change_lookup, _ in changes:
            change_lookup(shop.sources)
        assert shop.computed_days() == set[int]().union(*(days for _, days in changes)), number

    # Without a change feed, the rows of the files that changed are traced.
    shop.sources.set_feed(PRODUCTS_TABLE, False)
    shop.sources.update(PRODUCTS_TABLE, "kind = 'x' AND product = 'b'", price=6)
    shop.sources.set_feed(PRODUCTS_TABLE, True)
    assert "whole" not in shop.plan()
    assert 2 in shop.computed_days()


def test_what_cannot_be_traced_is_computed_whole_and_the_run_says_why(
    lakehouse: Lakehouse,
) -> None:
    shop = filled(lakehouse)
    path = lakehouse.paths.table(PRODUCTS_TABLE)
    files = open_table(path).file_uris()
    shop.sources.set_feed(PRODUCTS_TABLE, False)
    shop.sources.update(PRODUCTS_TABLE, "product = 'a'", price=6)
    for file in set(files) - set(open_table(path).file_uris()):
        Path(file).unlink()
    report = shop.run()
    reason = "files of silver.products that have changed since are gone"
    assert (report.notes, report.rows.read) == ((f"{GOLD}: the whole table was computed: {reason}",), 4)
    assert shop.rows() == shop.from_scratch()

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

from millrace.catalog import load_catalog
from millrace.contracts.job.report import JobReport
from millrace.control.log.stored_tables import open_table
from millrace.control.planning.planner import Planner
from millrace.settings import Settings
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
        return self.lakehouse.run_well(1, GOLD)

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


WHOLE = f"{GOLD}: the whole table was computed: files of {PRODUCTS_TABLE} that have changed since are gone"


def filled(lakehouse: Lakehouse) -> Shop:
    """A shop in which each product but `z` was ordered on a day of its own, and none on the fourth day."""
    shop = Shop(lakehouse)
    names = ("a", "b", "c", None, "e", "f", "g", "h", "j", "i")
    shop.sources.insert("silver.orders", *((at, date(2013, 1, at), name, 2) for at, name in enumerate(names, 1)))
    kinds = {"a": "x", "b": "x", "e": "x", "f": "x", "g": "x", "h": "y", "j": "x", "i": "z", "z": "x", None: "x"}
    shop.sources.insert(PRODUCTS_TABLE, *((name, kind, 5, True) for name, kind in kinds.items()))
    shop.sources.insert(KINDS_TABLE, ("x", 0, "light"), ("y", 2, "heavy"), ("z", 0, "new"), (None, 0, "none"))
    shop.run()
    assert shop.rows() == shop.from_scratch()
    return shop


CHANGES: list[tuple[Callable[[ChangedSources], None], set[int]]] = [
    (lambda lookups: lookups.update(PRODUCTS_TABLE, "product = 'z' OR product IS NULL", price=2), set()),
    (lambda lookups: lookups.insert(PRODUCTS_TABLE, (None, "y", 1, True), ("y", "y", 1, True)), set()),
    (lambda lookups: lookups.update(PRODUCTS_TABLE, "product = 'a'", price=6), {1}),
    (lambda lookups: lookups.update(PRODUCTS_TABLE, "product = 'b'", product="c"), {2, 3}),
    (lambda lookups: lookups.delete(PRODUCTS_TABLE, "product = 'e'"), {5}),
    (lambda lookups: lookups.update(PRODUCTS_TABLE, "product = 'f'", is_sold=False), {6}),
    (lambda lookups: lookups.insert(PRODUCTS_TABLE, ("g", "y", 1, True), ("g", "x", 2, True)), {7}),
    (lambda lookups: lookups.update(KINDS_TABLE, "kind = 'y'", least=9), {7, 8}),
    (lambda lookups: lookups.update(KINDS_TABLE, "kind IS NULL", label="dark"), {2, 4, 5, 6}),
]
"""A change of a lookup -> the days of which the groups are computed again."""


def test_a_changed_row_of_a_lookup_touches_the_days_of_the_facts_that_match_it_or_matched_it(
    lakehouse: Lakehouse,
) -> None:
    shop = filled(lakehouse)
    for change_lookup, _ in CHANGES:
        change_lookup(shop.sources)
    assert shop.computed_days() == set[int]().union(*(days for _, days in CHANGES)) == set(range(1, 9))

    # Without a change feed, the rows of the files that changed are traced.
    shop.sources.set_feed(PRODUCTS_TABLE, False)
    shop.sources.update(PRODUCTS_TABLE, "product = 'i'", price=6)
    shop.sources.set_feed(PRODUCTS_TABLE, True)
    assert "whole" not in shop.plan()
    assert 10 in shop.computed_days()

    # And if these are gone, all is computed.
    path = lakehouse.paths.table(PRODUCTS_TABLE)
    files = open_table(path).file_uris()
    shop.sources.set_feed(PRODUCTS_TABLE, False)
    shop.sources.update(PRODUCTS_TABLE, "product = 'a'", price=7)
    for file in set(files) - set(open_table(path).file_uris()):
        Path(file).unlink()
    report = shop.run()
    assert (report.notes, report.rows.read) == ((WHOLE,), len(shop.rows()))
    assert shop.rows() == shop.from_scratch()

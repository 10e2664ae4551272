"""A lakehouse whose sources are changed in any way and certified, with gold tables of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from millrace.catalog import load_catalog
from millrace.contracts.job.report import JobReport
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.log.delta_log import latest_version
from millrace.errors import Outcome
from millrace.specs.checks.refresh import refresh_notes
from millrace.specs.checks.sql import sql_problems
from tests.support.documents.specs import Document
from tests.support.gold.changed_sources import ChangedSources, equals
from tests.support.gold.random_specs import Kind
from tests.support.lakehouse import Lakehouse
from tests.support.model_database import model_database

COLUMNS = {
    "silver.orders": {"id": "int", "day": "date", "at": "timestamp", "product": "string", "amount": "int"},
    "silver.products": {"product": "string", "kind": "string", "price": "int"},
    "silver.owners": {"product": "string", "owner": "string", "valid_from": "date", "valid_to": "date"},
}
ROWS = {"silver.orders": 25, "silver.products": 4, "silver.owners": 6}
START = datetime(2013, 1, 1, tzinfo=UTC)
PRODUCTS, KINDS, OWNERS = (None, "a", "b", "c"), (None, "x", "y"), ("ann", "bob", None)


class Shop:
    """A lakehouse with three sources and gold tables of them."""

    def __init__(self, lakehouse: Lakehouse, random: Random, kinds: tuple[Kind, ...]) -> None:
        self.lakehouse = lakehouse
        self.random = random
        made = {kind: kind(random) for kind in kinds}
        self.kinds = {document["table"]: kind for kind, (document, _) in made.items()}
        self.queries = {document["table"]: query for document, query in made.values()}
        self.asked = dict[str, str]()
        self.sources = ChangedSources(lakehouse, COLUMNS)
        self.write_specs(*(document for document, _ in made.values()))

    def write_specs(self, *documents: Document) -> None:
        """Write specs of gold tables, some without their `refresh_from`, and require that each refresh is proved."""
        for document in documents:
            states_it = self.random.random() < 0.5 or "query" in document
            self.lakehouse.specs(document if states_it else {**document, "refresh_from": {}})
        self.catalog = load_catalog(self.lakehouse.folder / "tables")
        assert sql_problems(self.catalog) == []
        for table in self.queries:
            spec = self.catalog.spec(table)
            assert not any("does not prove" in note for note in refresh_notes(spec, self.catalog.specs))

    def fill(self) -> None:
        """Insert random rows into each source."""
        for table in COLUMNS:
            self._fill(table)

    def _fill(self, table: str) -> None:
        self.sources.insert(table, *(random_row(self.random, table) for _ in range(ROWS[table])))

    def change(self, table: str) -> None:
        """Insert, update, move, delete, restore, replace or compact rows, fill the table anew, or add a column."""
        random, sources = self.random, self.sources
        key, *others = COLUMNS[table]
        row = random_row(random, table)
        of_key = equals(key, row[0])
        kinds = ("insert", "insert", "update", "update", "move", "delete", "truncate", "restore", "replace", "column")
        match random.choice((*kinds, "optimize", "unfed")):  # a delete while the table has no change feed
            case "insert":
                sources.insert(table, row, random_row(random, table))
            case "update":
                sources.update(table, of_key, **dict(zip(others, row[1:], strict=True)))
            case "move":
                sources.update(table, of_key, **{key: random_row(random, table)[0]})
            case "delete":
                sources.delete(table, of_key)
            case "truncate":
                sources.delete(table)
                self._fill(table)
            case "restore":
                sources.restore_version_before(table)
            case "replace":
                sources.overwrite_without(table, **{key: row[0]})
            case "column":
                sources.add_column(table, f"extra_{latest_version(self.lakehouse.paths.table(table))}")
            case "optimize":
                sources.optimize(table)
            case "unfed":
                sources.set_feed(table, False)
                sources.delete(table, of_key)
                sources.set_feed(table, True)

    def change_little(self) -> None:
        """Insert one row into each source, with keys, days and times after all others."""
        after = START + timedelta(days=45)
        self.sources.insert("silver.orders", (40, after.date(), after, "d", 2))
        self.sources.insert("silver.products", ("d", "z", 9))
        self.sources.insert("silver.owners", ("e", "eve", after.date(), None))

    def change_gold(self, table: str) -> None:
        """Let the next run of a gold table reprocess or rebuild it, or follow another random spec of its kind."""
        self.asked[table] = self.random.choice(("reprocess", "rebuild", "spec", "spec"))
        if self.asked[table] == "spec":
            document, self.queries[table] = self.kinds[table](self.random)
            self.write_specs(document)

    def run(self) -> dict[str, int]:
        """Run every gold table on the newest versions; return how many rows each run has computed."""
        self.sources.certify()
        computed = {}
        for table in self.queries:
            report = self._run(table, self.asked.pop(table, ""))
            assert report.exit_code == 0, report.message
            computed[table] = report.rows.read if report.outcome is Outcome.COMMITTED else 0
        return computed

    def _run(self, table: str, asked: str) -> JobReport:
        if asked == "rebuild":
            return self.lakehouse.rebuild(table)
        # The next run follows another query; the groups of other measures are computed if somebody asks for it.
        spec = self.catalog.spec(table)
        reprocess = asked == "reprocess" or (asked == "spec" and isinstance(spec, GoldSpec) and spec.query is None)
        report = self.lakehouse.run(table, reprocess=reprocess)
        return self.lakehouse.rebuild(table) if "lakehouse rebuild" in report.message else report

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        spec = self.catalog.spec(table)
        columns = spec.query_columns or (*spec.group_by, *spec.measures)
        return in_order(self.lakehouse.rows(table, *columns))

    def from_scratch(self, table: str) -> list[tuple[Any, ...]]:
        with model_database() as connection:
            for each in (*COLUMNS, *(name for name in self.queries if name != table)):
                rows = DeltaTable(str(self.lakehouse.paths.table(each))).to_pyarrow_table()
                naive = [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in rows.schema]
                connection.register(each.partition(".")[2], rows.cast(pa.schema(naive)))
            return in_order(connection.sql(self.queries[table]).fetchall())


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows in an order, with times as text, since both libraries have their own UTC."""
    texts = [tuple(f"{v:%Y-%m-%d %H:%M}" if isinstance(v, datetime) else v for v in row) for row in rows]
    return sorted(texts, key=repr)


def random_row(random: Random, table: str) -> tuple[Any, ...]:
    time = START + timedelta(hours=random.randrange(24 * 40))
    at = random.choice((None, time, time, time, time))
    match table:
        case "silver.orders":
            amount = random.choice((None, *range(5)))
            return random.randrange(40), at and at.date(), random.choice((at, time)), random.choice(PRODUCTS), amount
        case "silver.products":
            return random.choice(PRODUCTS), random.choice(KINDS), random.randrange(1, 9)
        case _:
            end = random.choice((None, (time + timedelta(days=random.randrange(9))).date()))
            return random.choice(PRODUCTS), random.choice(OWNERS), time.date(), end

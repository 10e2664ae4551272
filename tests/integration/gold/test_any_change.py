"""Gold tables of every kind on real Delta: after any changes of their sources, each has the rows that DuckDB computes.

The sources are written by Spark's SQL and certified here. Some specs are random: measures, lookbacks, joins, filters.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.catalog import load_catalog
from include.contracts.job.args import Job
from include.contracts.spec.table_spec import GoldSpec
from include.control.log.delta_log import latest_version
from include.errors import Outcome
from include.specs.checks.refresh import unproved_refreshes
from include.specs.checks.sql import sql_problems
from spark_jobs.delta_io.tables import sql_path
from spark_jobs.runtime.session import own_session
from tests.support.documents.specs import Document, bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import judge

COLUMNS = {
    "silver.orders": {"id": "int", "day": "date", "at": "timestamp", "product": "string", "amount": "int"},
    "silver.products": {"product": "string", "kind": "string", "price": "int"},
    "silver.owners": {"product": "string", "owner": "string", "valid_from": "date", "valid_to": "date"},
}
START = datetime(2013, 1, 1, tzinfo=UTC)
PRODUCTS, KINDS, OWNERS = (None, "a", "b", "c"), (None, "x", "y"), ("ann", "bob", None)
ROUNDS = 5

Kind = Callable[[Random], tuple[Document, str]]
"""Makes a random gold spec, and the query by which DuckDB computes its rows."""


def lookback_of_windows(random: Random) -> tuple[Document, str]:
    days, aggregate = (
        random.randint(1, 4),
        random.choice(("sum(count(*))", "max(sum(o.amount))", "count(sum(o.amount))")),
    )
    partition = random.choice(("", "partition by o.product "))
    frame = f"range between interval {days} days preceding and current row"
    document = gold_document(
        "gold.windows",
        sources={"o": {"table": "silver.orders", "where": random.choice(("amount > 0", "true"))}},
        group_by={"day": "o.day", "product": "o.product"},
        measures={"orders": "count(*)", "recent": f"{aggregate} over ({partition}order by o.day {frame})"},
        lookback=f"{days + random.randint(0, 1)} days",
    )
    over = f"{partition}ORDER BY day NULLS FIRST RANGE BETWEEN INTERVAL {days} DAYS PRECEDING AND CURRENT ROW"
    inner = {"sum(count(*))": "sum(n)", "max(sum(o.amount))": "max(total)", "count(sum(o.amount))": "count(total)"}
    query = f"""
        SELECT day, product, n, {inner[aggregate]} OVER ({over.replace("o.", "")}) FROM (
            SELECT day, product, count(*) AS n, sum(amount) AS total FROM orders
            WHERE {document["sources"]["o"]["where"]} GROUP BY ALL)
    """
    return document, query


def lookback_of_hours(random: Random) -> tuple[Document, str]:
    hours, grain = random.randint(1, 30), random.choice(("hour", "day", "week"))
    frame = f"range between interval {hours} hours preceding and current row"
    document = gold_document(
        "gold.hours",
        sources={"o": {"table": "silver.orders"}},
        refresh_by="start",
        refresh_from={"o": f"date_trunc('{grain}', at)"},
        group_by={"start": f"date_trunc('{grain}', o.at)"},
        measures={"recent": f"sum(count(*)) over (order by date_trunc('{grain}', o.at) {frame})"},
        lookback=f"{hours} hours",
    )
    query = f"""
        SELECT start, sum(n) OVER (ORDER BY start NULLS FIRST {frame})
        FROM (SELECT date_trunc('{grain}', "at") AS start, count(*) AS n FROM orders GROUP BY ALL)
    """
    return document, query


def lookback_of_join(random: Random) -> tuple[Document, str]:
    days, join = random.randint(1, 3), random.choice(("inner", "left"))
    document = gold_document(
        "gold.active",
        sources={
            "o": {"table": "silver.orders"},
            "h": {
                "table": "silver.orders",
                "join": join,
                "on": f"h.day between date_sub(o.day, {days}) and o.day",
                "where": random.choice(("amount > 0", "true")),
            },
            "p": {"table": "silver.products", "join": "left", "on": "p.product = h.product", "lookup": True},
        },
        refresh_from={"o": "day", "h": "day"},
        measures={"products": "count(distinct h.product)", "kinds": "count(distinct p.kind)"},
        lookback=f"{days} days",
    )
    query = f"""
        SELECT o.day, count(DISTINCT h.product), count(DISTINCT p.kind) FROM orders o
        {join} JOIN (FROM orders WHERE {document["sources"]["h"]["where"]}) h ON h.day BETWEEN o.day - {days} AND o.day
        LEFT JOIN products p ON p.product = h.product GROUP BY o.day
    """
    return document, query


def running_total(random: Random) -> tuple[Document, str]:
    value = random.choice(("day", "at", "id", "product"))
    document = gold_document(
        "gold.running",
        sources={"o": {"table": "silver.orders"}},
        refresh_by="value",
        refresh_from={"o": value},
        group_by={"value": f"o.{value}"},
        measures={"orders": "count(*)", "total": f"sum(sum(o.amount)) over (order by o.{value})"},
        lookback="unbounded",
    )
    query = f"""
        SELECT value, n, CAST(sum(total) OVER (ORDER BY value NULLS FIRST) AS BIGINT)
        FROM (SELECT "{value}" AS value, count(*) AS n, sum(amount) AS total FROM orders GROUP BY ALL)
    """
    return document, query


def rolling_query(random: Random) -> tuple[Document, str]:
    days = random.randint(1, 3)
    query = f"""
        WITH days AS (SELECT day, product, count(*) AS n FROM o GROUP BY day, product),
        sums AS (SELECT day, product, n, sum(n) OVER (PARTITION BY product ORDER BY day
                 RANGE BETWEEN INTERVAL {days} DAYS PRECEDING AND CURRENT ROW) AS recent FROM days)
        SELECT s.day, s.product, s.recent, max(o.amount) AS most FROM sums AS s
        LEFT JOIN o ON o.day >= s.day - INTERVAL 1 DAY AND o.day <= s.day
        GROUP BY s.day, s.product, s.recent
    """
    document = {
        "table": "gold.rolling",
        "sources": {"o": {"table": "silver.orders"}},
        "query": query,
        "refresh_by": "day",
        "lookback": f"{days} days",
    }
    return document, query.replace(" o ON", " orders AS o ON").replace("FROM o ", "FROM orders ").replace(
        "ORDER BY day", "ORDER BY day NULLS FIRST"
    )


def by_day(random: Random) -> tuple[Document, str]:
    join = random.choice(("inner", "left"))
    document = gold_document(
        "gold.daily",
        sources={
            "o": {"table": "silver.orders"},
            "p": {"table": "silver.products", "join": join, "on": "p.product = o.product", "lookup": True},
        },
        group_by={"day": "o.day", "kind": "p.kind"},
        measures={"orders": "count(*)", "total": "sum(o.amount * p.price)"},
    )
    query = f"""
        SELECT day, kind, count(*), CAST(sum(amount * price) AS BIGINT) FROM orders o
        {join} JOIN products p ON p.product = o.product GROUP BY day, kind
    """
    return document, query


def running_months(random: Random) -> tuple[Document, str]:
    _, query = by_day(random)
    document = gold_document(
        "gold.months",
        sources={"d": {"table": "gold.daily"}},
        refresh_by="month",
        refresh_from={"d": "trunc(day, 'MM')"},
        group_by={"month": "trunc(d.day, 'MM')"},
        measures={"so_far": "sum(sum(d.orders)) over (order by trunc(d.day, 'MM'))"},
        lookback="unbounded",
    )
    query = """
        SELECT month, CAST(sum(n) OVER (ORDER BY month NULLS FIRST) AS BIGINT)
        FROM (SELECT date_trunc('month', day)::date AS month, sum(orders) AS n FROM daily GROUP BY ALL)
    """
    return document, query


def state_of_each_day(random: Random) -> tuple[Document, str]:
    document = gold_document(
        "gold.owners_daily",
        sources={
            "d": {"table": "gold.days"},
            "h": {
                "table": "silver.owners",
                "join": "inner",
                "on": "h.valid_from <= d.day and (h.valid_to is null or h.valid_to > d.day)",
                "lookup": True,
            },
        },
        refresh_from={"d": "day"},
        group_by={"day": "d.day", "owner": "h.owner"},
        measures={"products": "count(*)"},
    )
    query = """
        SELECT d.day, h.owner, count(*) FROM (SELECT DISTINCT day FROM orders) d
        JOIN owners h ON h.valid_from <= d.day AND (h.valid_to IS NULL OR h.valid_to > d.day) GROUP BY ALL
    """
    return document, query


def days(random: Random) -> tuple[Document, str]:
    document = gold_document("gold.days", group_by={"day": "o.day"}, measures={"orders": "count(*)"})
    return document, "SELECT day, count(*) FROM orders GROUP BY day"


def last_of_each_day(random: Random) -> tuple[Document, str]:
    query = """
        SELECT day, sum(amount) AS total
        FROM (SELECT day, product, max_by(amount, struct(at, id)) AS amount FROM o GROUP BY day, product) GROUP BY day
    """
    expected = """
        SELECT day, CAST(sum(amount) AS BIGINT) FROM (
            SELECT day, product, amount FROM orders QUALIFY
            row_number() OVER (PARTITION BY day, product ORDER BY "at" DESC NULLS LAST, id DESC, amount DESC) = 1)
        GROUP BY day
    """
    sources = {"o": {"table": "silver.orders"}}
    return {"table": "gold.balances", "sources": sources, "query": query, "refresh_by": "day"}, expected


KINDS_OF_GOLD: tuple[Kind, ...] = (
    lookback_of_windows, lookback_of_hours, lookback_of_join, running_total, rolling_query, last_of_each_day,
)  # fmt: skip
WITH_GOLD: tuple[Kind, ...] = (by_day, running_months, days, state_of_each_day)
"""Tables that read tables before them."""


class Shop:
    """A lakehouse with three sources and gold tables of them; its rows are changed by SQL."""

    def __init__(self, lakehouse: Lakehouse, session: SparkSession, random: Random, kinds: tuple[Kind, ...]) -> None:
        self.lakehouse = lakehouse
        self.session = session
        self.random = random
        made = [kind(random) for kind in kinds]
        self.queries = {document["table"]: query for document, query in made}
        for table, columns in COLUMNS.items():
            source = table.replace("silver", "bronze")
            typed = {name: {"type": kind} for name, kind in columns.items()}
            key, sequence, *_ = columns
            of_table = {"source": source, "columns": typed, "keys": [key], "sequence_by": [sequence]}
            lakehouse.specs(bronze_document(source, columns=typed), silver_document(table, **of_table))
            listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            feed = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
            self.sql(f"CREATE TABLE {self.place(table)} ({listed}) USING delta {feed}")
        lakehouse.specs(*(document for document, _ in made))
        self.catalog = load_catalog(lakehouse.folder / "tables")
        assert sql_problems(self.catalog) == []
        for table in self.queries:
            spec = self.catalog.spec(table)
            assert isinstance(spec, GoldSpec)
            assert unproved_refreshes(spec, self.catalog.specs) == (), "each refresh is proved"

    def place(self, table: str) -> str:
        return sql_path(self.lakehouse.paths.table(table))

    def sql(self, statement: str) -> None:
        self.session.sql(statement).collect()

    def change(self, table: str) -> None:
        """Insert, update, move, delete or restore rows, replace all of them, or add a column."""
        random, place = self.random, self.place(table)
        key, *others = COLUMNS[table]
        row = random_row(random, table)
        of_key = f"{key} <=> {literal(row[0])}"
        names = ", ".join(COLUMNS[table])
        kinds = ("insert", "insert", "update", "update", "move", "delete", "restore", "replace", "column")
        match random.choice(kinds):
            case "insert":
                self.insert(table, row, random_row(random, table))
            case "update":
                values = ", ".join(f"{name} = {literal(value)}" for name, value in zip(others, row[1:], strict=True))
                self.sql(f"UPDATE {place} SET {values} WHERE {of_key}")
            case "move":
                self.sql(f"UPDATE {place} SET {key} = {literal(random_row(random, table)[0])} WHERE {of_key}")
            case "delete":
                self.sql(f"DELETE FROM {place} WHERE {of_key}")
            case "restore":
                version = latest_version(self.lakehouse.paths.table(table))
                self.sql(f"RESTORE TABLE {place} TO VERSION AS OF {max(version - 1, 1)}")
            case "replace":
                self.sql(f"INSERT OVERWRITE {place} ({names}) SELECT {names} FROM {place} WHERE NOT {of_key}")
            case "column":
                version = latest_version(self.lakehouse.paths.table(table))
                self.sql(f"ALTER TABLE {place} ADD COLUMNS (extra_{version} string)")

    def insert(self, table: str, *rows: tuple[Any, ...]) -> None:
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        self.sql(f"INSERT INTO {self.place(table)} ({', '.join(COLUMNS[table])}) VALUES {values}")

    def run(self) -> dict[str, int]:
        """Run every gold table on the newest versions; return how many rows each run has computed."""
        for table in COLUMNS:
            judge(
                self.lakehouse.paths.root, self.catalog.spec(table), latest_version(self.lakehouse.paths.table(table))
            )
        computed = {}
        for table in self.queries:
            report = self.lakehouse.run(table)
            assert report.exit_code == 0, report.message
            computed[table] = report.rows.read if report.outcome is Outcome.COMMITTED else 0
        return computed

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        spec = self.catalog.spec(table)
        assert isinstance(spec, GoldSpec)
        columns = spec.query_columns or (*spec.group_by, *spec.measures)
        return in_order(self.lakehouse.rows(table, *columns))

    def from_scratch(self, table: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as connection:
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


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMP'{value:%Y-%m-%d %H:%M:%S}'"
    return repr(value) if isinstance(value, int | str) else f"DATE'{value}'"


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.faults) for seed in range(3, 20))])
def test_after_any_changes_gold_is_what_a_computation_from_scratch_gives(lakehouse: Lakehouse, seed: int) -> None:
    random, kept = Random(seed), 0
    with own_session({}) as session:
        kinds = (*random.sample(KINDS_OF_GOLD, 3), *(WITH_GOLD[:2] if seed % 2 else WITH_GOLD[2:]))
        shop = Shop(lakehouse, session, random, kinds)
        for table, number in (("silver.orders", 25), ("silver.products", 4), ("silver.owners", 6)):
            shop.insert(table, *(random_row(random, table) for _ in range(number)))
        for _ in range(ROUNDS):
            computed = shop.run()
            for table in shop.queries:
                rows = shop.rows(table)
                assert rows == shop.from_scratch(table), (table, shop.queries[table])
                kept += 0 < computed[table] < len(rows)
            for table in random.sample(list(COLUMNS), random.choice((1, 1, 2, 3))):
                shop.change(table)
        for table in random.sample(list(shop.queries), 2):
            report = lakehouse.run(table, job=Job.TABLE_VERIFY)
            assert (report.outcome, report.details["differing"]) == (Outcome.NO_OP, 0), report.message
    assert kept, "some runs compute a part of a table"

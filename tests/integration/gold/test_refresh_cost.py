"""What a refresh reads and rewrites on real Delta: touched values, their ranges or all, and the files that hold them.

The source is changed by Spark's SQL. DuckDB computes the expected groups from all rows.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from include.catalog import load_catalog
from include.contracts.job.report import JobReport, RowCounts
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import open_table
from include.control.maintenance import health
from include.control.planning import refresh_cost
from include.control.planning.planner import Planner, stream_position
from include.control.planning.refresh_cost import RefreshCost
from include.settings import Settings
from spark_jobs.delta_io.reads import read_version
from spark_jobs.delta_io.tables import sql_path
from spark_jobs.layers.gold.gold import GoldAggregate
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.session import own_session
from spark_jobs.transforms.touched_rows import gives_touched
from tests.support.documents.specs import Document, sums_document, typed_documents
from tests.support.given import arrow_type, given
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day, judge

SILVER, GOLD = "silver.orders", "gold.sums"
LISTED, FILE = 20, 1_500


class Shop:
    """Orders, changed by SQL, and gold tables of them."""

    def __init__(self, lakehouse: Lakehouse, session: SparkSession, columns: dict[str, str], *gold: Document) -> None:
        self.lakehouse, self.session = lakehouse, session
        self.path, self.columns = lakehouse.paths.table(SILVER), columns
        lakehouse.specs(*typed_documents(columns), *gold)
        listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        self.sql(f"CREATE TABLE {{}} ({listed}) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")

    def sql(self, statement: str) -> None:
        self.session.sql(statement.format(sql_path(self.path))).collect()

    def insert(self, *rows: tuple[int, str | None, int]) -> None:
        named = [dict(zip(self.columns, row, strict=True)) for row in rows]
        schema = pa.schema([(name, arrow_type(kind)) for name, kind in self.columns.items()])
        write_deltalake(str(self.path), pa.Table.from_pylist(named, schema), mode="append")

    def run(self, table: str = GOLD) -> JobReport:
        """Run a gold table on the newest version; groups must be those that DuckDB computes."""
        self.certify()
        report = self.lakehouse.run(table)
        assert report.exit_code == 0, report.message
        if table == GOLD:
            orders = open_table(self.path).to_pyarrow_table()  # noqa: F841  DuckDB finds it by its name
            groups = "SELECT basket, count(*), CAST(sum(amount) AS BIGINT) FROM orders GROUP BY basket"
            rows = self.lakehouse.rows(GOLD, "basket", "orders", "total")
            assert rows == sorted(duckdb.sql(groups).fetchall(), key=repr)
            assert self.counted_again() == report.rows, "another driver finds the counts, if the batch's own has died"
        return report

    def certify(self) -> None:
        spec = load_catalog(self.lakehouse.folder / "tables").spec(SILVER)
        judge(self.lakehouse.paths.root, spec, latest_version(self.path))

    def plan(self) -> str:
        self.certify()
        settings = Settings(root=self.lakehouse.paths.root, tables=self.lakehouse.folder / "tables")
        catalog = load_catalog(settings.tables)
        return Planner(catalog, settings).advise(catalog.spec(GOLD), day(1)).message

    def counted_again(self) -> RowCounts:
        context = JobContext(self.lakehouse.args(GOLD))
        position = stream_position(context.spec, context.paths, context.ops.ledger)
        assert position is not None
        assert position.last is not None
        return GoldAggregate(context).close(position.last).rows


def test_a_run_chooses_by_the_files_that_it_would_read_and_says_so(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SMALL", "TRACING"):
        monkeypatch.setattr(refresh_cost, name, 0)
    with own_session({}) as session:
        shop = Shop(
            lakehouse, session, {"id": "int", "basket": "string", "amount": "int"}, sums_document(GOLD, "basket")
        )
        shop.insert((0, None, 1), (1, "", 1), (2, "it's", 1), (3, "\u00e9", 1))
        for number in range(1, 30):
            shop.insert(*((number, f"{number:02d} {row}", row) for row in range(50)))
        shop.run()
        shop.insert((0, "07 1", 5))
        assert "; incremental, unless it costs more: to trace changes of " in shop.plan()
        report = shop.run()
        assert "; incremental: 1 value of basket changed (changes of " in report.message
        figures = report.details["refresh"]
        assert figures["values"] == 1
        assert 0 < figures["read"] < figures["sources"] / 3
        assert figures["incremental"] < figures["whole"]
        shop.sql("UPDATE {} SET amount = amount + 1")
        report = shop.run()
        assert report.notes[0].startswith(f"{GOLD}: the whole table was computed: at least ")
        assert "incremental" not in report.message


def test_of_more_values_than_are_listed_the_ranges_that_contain_them_are_computed(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"SMALL": 0, "TRACING": 0, "LISTED": 1, "MOST_LISTED": LISTED}.items():
        monkeypatch.setattr(refresh_cost, name, value)
    orders = "INSERT INTO {{}} SELECT CAST(id AS INT), id div 10, 1 FROM range({}, {})"
    with own_session({}) as session:
        shop = Shop(
            lakehouse, session, {"id": "int", "basket": "bigint", "amount": "int"}, sums_document(GOLD, "basket")
        )
        shop.sql(orders.format(0, 20_000))
        shop.run()
        shop.sql(orders.format(20_000, 22_000))
        shop.sql("UPDATE {} SET amount = 2 WHERE id = 77")
        report = shop.run()
        assert report.rows.read == 201, "200 new groups and an old one"
        assert "at least 21 values of basket changed, in 2 ranges (changes of " in report.message
        assert report.details["refresh"]["ranges"] == 2
        shop.sql("UPDATE {} SET basket = NULL WHERE id > 21000")
        report = shop.run()
        assert report.details["refresh"]["ranges"] == 2, "one of them is null"
        assert report.rows.read == 2, "the group of order 21000, and the orders without one"
        monkeypatch.undo()
        shop.sql("UPDATE {} SET amount = 3 WHERE basket % 2 = 0")
        assert shop.run().rows.read == 1_051, "a small table keeps each row that no change touches"


BY_DAY: dict[str, dict[str, Any]] = {
    "gold.by_id": {
        "group_by": {"day": "o.day", "id": "o.id"},
        "measures": {"total": "sum(o.amount)"},
        "refresh_by": "day",
        "refresh_from": {"o": "day"},
    },
    "gold.by_year": {
        "query": "SELECT id, amount, rank() OVER (PARTITION BY day ORDER BY id) AS place, day, "
        "CAST(year(day) AS INT) AS year FROM o",
        "refresh_by": "day",
        "partitioned_by": ["year"],
    },
}


def test_the_files_of_a_table_follow_the_values_so_that_a_change_of_the_newest_day_rewrites_few(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LEAST_COMPUTED_FILE", FILE)
    for name, value in {"SMALL": 0, "TRACING": 0, "LISTED": 1}.items():
        monkeypatch.setattr(refresh_cost, name, value)
    monkeypatch.setattr(RefreshCost, "is_whole_cheaper", False)
    rows, days = 4_000, 200
    tables = [{"table": table, "sources": {"o": {"table": SILVER}}, **keys} for table, keys in BY_DAY.items()]
    with own_session({}) as session:
        shop = Shop(lakehouse, session, {"id": "int", "day": "date", "amount": "int"}, *tables)
        of_day = f"date_add(DATE'2012-10-01', CAST(id % {days} AS INT))"
        shop.sql(f"INSERT INTO {{}} SELECT CAST(id AS INT), {of_day}, 1 FROM range({rows})")
        for table in BY_DAY:
            shop.run(table)
            spans = days_of_files(lakehouse, table)
            assert len(spans) >= rows * 3 / FILE, f"{table} has several files"
            assert max(spans) <= days / 3, f"the files of {table} follow the days"
        shop.sql(f"UPDATE {{}} SET amount = 2 WHERE id % {days} = {days - 1}")
        for table in BY_DAY:
            report = shop.run(table)
            figures = report.details["refresh"]
            assert (figures["values"], report.rows.read) == (1, rows // days)
            assert 0 < figures["rewritten"] < figures["table"] / 4


def days_of_files(lakehouse: Lakehouse, table: str) -> list[int]:
    """Return how many days there are from the least to the greatest day of each file."""
    files = pa.table(open_table(lakehouse.paths.table(table)).get_add_actions(flatten=True))
    ends = zip(files["min.day"].to_pylist(), files["max.day"].to_pylist(), strict=True)
    return [(last - first).days for first, last in ends]


TOUCHED = {
    "day": "2013-01-04",
    "to_date(event_at)": "2013-01-04",
    "date_trunc('hour', event_at)": "2013-01-04 00:00:00",
    "to_date(from_utc_timestamp(event_at, 'America/New_York'))": "2013-01-03",
}


def test_files_without_a_touched_row_are_not_read(lakehouse: Lakehouse) -> None:
    days = (1, 4, 8)
    for number in days:
        given(lakehouse, SILVER, [order(f"{number}{key}", 1, of_day=number) for key in range(3)], number)
    with own_session({}) as session:
        rows = read_version(session, lakehouse.paths.table(SILVER), len(days))
        assert len(rows.inputFiles()) == len(days)
        for expression, value in TOUCHED.items():
            found = rows.where(gives_touched(expression, rows, [value]))
            assert len(found.inputFiles()) == 1, expression
            assert sorted(row["order_id"] for row in found.collect()) == ["o40", "o41", "o42"], expression

"""What a refresh reads and rewrites on real Delta: touched values, their ranges or all, and the files that hold them.

DuckDB computes the expected groups from all rows.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from millrace.catalog import load_catalog
from millrace.contracts.job.report import JobReport, RowCounts
from millrace.control.log.stored_tables import open_table
from millrace.control.maintenance import file_layout
from millrace.control.planning import refresh_cost
from millrace.control.planning.planner import Planner, stream_position
from millrace.control.planning.refresh_cost import RefreshCost
from millrace.settings import Settings
from millrace_spark.delta_io.reads import read_version
from millrace_spark.layers.gold.gold import GoldAggregate
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.session import own_session
from millrace_spark.transforms.touched_rows import gives_touched
from tests.support.documents.specs import Document, sums_document
from tests.support.given import given
from tests.support.gold.changed_sources import ChangedSources
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day

SILVER, GOLD = "silver.orders", "gold.sums"
LISTED, FILE = 20, 1_500


class Shop:
    """Orders, and gold tables of them."""

    def __init__(self, lakehouse: Lakehouse, columns: dict[str, str], *gold: Document) -> None:
        self.lakehouse = lakehouse
        self.path = lakehouse.paths.table(SILVER)
        self.sources = ChangedSources(lakehouse, {SILVER: columns})
        lakehouse.specs(*gold)

    def insert(self, *rows: tuple[Any, ...]) -> None:
        self.sources.insert(SILVER, *rows)

    def update(self, where: str, **values: Any) -> None:
        self.sources.update(SILVER, where, **values)

    def run(self, table: str = GOLD) -> JobReport:
        """Run a gold table on the newest version; groups must be those that DuckDB computes."""
        self.sources.certify()
        report = self.lakehouse.run_well(1, table)
        if table == GOLD:
            orders = open_table(self.path).to_pyarrow_table()  # noqa: F841  DuckDB finds it by its name
            groups = "SELECT basket, count(*), CAST(sum(amount) AS BIGINT) FROM orders GROUP BY basket"
            rows = self.lakehouse.rows(GOLD, "basket", "orders", "total")
            assert rows == sorted(duckdb.sql(groups).fetchall(), key=repr)
        return report

    def plan(self) -> str:
        self.sources.certify()
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
    shop = Shop(lakehouse, {"id": "int", "basket": "string", "amount": "int"}, sums_document(GOLD, "basket"))
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
    assert shop.counted_again() == report.rows, "another driver finds the counts, if the batch's own has died"
    shop.update("id >= 0", amount=7)
    report = shop.run()
    assert report.notes[0].startswith(f"{GOLD}: the whole table was computed: at least ")
    assert "incremental" not in report.message


def test_of_more_values_than_are_listed_the_ranges_that_contain_them_are_computed(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"SMALL": 0, "TRACING": 0, "LISTED": 1, "MOST_LISTED": LISTED}.items():
        monkeypatch.setattr(refresh_cost, name, value)
    monkeypatch.setattr(RefreshCost, "is_whole_cheaper", False)
    shop = Shop(lakehouse, {"id": "int", "basket": "bigint", "amount": "int"}, sums_document(GOLD, "basket"))
    rows = [(number, number // 10, 1) for number in range(20_200)]
    shop.insert(*rows[:20_000])
    shop.run()
    shop.insert(*rows[20_000:])
    shop.update("id = 77", amount=2)
    shop.update("id >= 20190", basket=None)
    report = shop.run()
    assert report.rows.read == 21, "19 new groups, an old one, and the orders without one"
    assert "at least 21 values of basket changed, in 3 ranges (changes of " in report.message
    assert report.details["refresh"]["ranges"] == 3, "one of them is null"
    monkeypatch.undo()
    shop.update("basket % 2 = 0", amount=3)
    assert shop.run().rows.read == 1_010, "a small table keeps each row that no change touches"


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
    monkeypatch.setattr(file_layout, "LEAST_COMPUTED_FILE", FILE)
    for name, value in {"SMALL": 0, "TRACING": 0, "LISTED": 1}.items():
        monkeypatch.setattr(refresh_cost, name, value)
    monkeypatch.setattr(RefreshCost, "is_whole_cheaper", False)
    rows, days = 4_000, 200
    tables = [{"table": table, "sources": {"o": {"table": SILVER}}, **keys} for table, keys in BY_DAY.items()]
    shop = Shop(lakehouse, {"id": "int", "day": "date", "amount": "int"}, *tables)
    shop.insert(*((number, date(2012, 10, 1) + timedelta(days=number % days), 1) for number in range(rows)))
    for table in BY_DAY:
        shop.run(table)
        spans = days_of_files(lakehouse, table)
        assert len(spans) >= rows * 3 / FILE, f"{table} has several files"
        assert max(spans) <= days / 3, f"the files of {table} follow the days"
    shop.update(f"id % {days} = {days - 1}", amount=2)
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

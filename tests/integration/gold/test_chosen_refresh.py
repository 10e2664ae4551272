"""The choice between touched and all groups on real Delta: the rows never depend on it, and the run says what it did.

The source is changed by Spark's SQL: with and without a change feed, by RESTORE and by OPTIMIZE. DuckDB computes the
expected groups from all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from include.catalog import load_catalog
from include.contracts.job.report import JobReport, RowCounts
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import open_table
from include.control.planning import refresh_cost
from include.control.planning.planner import Planner, stream_position
from include.control.planning.refresh_cost import RefreshCost
from include.settings import Settings
from spark_jobs.delta_io.tables import sql_path
from spark_jobs.layers.gold.gold import GoldAggregate
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.session import own_session
from tests.support.documents.specs import sums_document, typed_documents
from tests.support.given import arrow_type
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import day, judge

GOLD, SILVER = "gold.sales", "silver.orders"
COLUMNS = {"id": "int", "place": "string", "amount": "int"}
PLACES = [None, "", "it's", "a", "b", "\u00e9", *map(str, range(60))]


class Shop:
    """Orders, and their sum per place."""

    def __init__(self, lakehouse: Lakehouse, session: SparkSession) -> None:
        self.lakehouse, self.session = lakehouse, session
        lakehouse.specs(*typed_documents(COLUMNS), sums_document(GOLD, "place"))
        self.path = lakehouse.paths.table(SILVER)
        listed = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        self.sql(f"CREATE TABLE {{}} ({listed}) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
        self.insert(*((number, place, number) for number, place in enumerate(PLACES)))

    def sql(self, statement: str) -> None:
        self.session.sql(statement.format(sql_path(self.path))).collect()

    def insert(self, *rows: tuple[int, str | None, int]) -> None:
        named = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        schema = pa.schema([(name, arrow_type(kind)) for name, kind in COLUMNS.items()])
        write_deltalake(str(self.path), pa.Table.from_pylist(named, schema), mode="append")

    def certify(self) -> None:
        judge(self.lakehouse.paths.root, load_catalog(self.lakehouse.folder / "tables").spec(SILVER), self.version)

    @property
    def version(self) -> int:
        return latest_version(self.path)

    def run(self) -> JobReport:
        self.certify()
        report = self.lakehouse.run(GOLD)
        assert report.exit_code == 0, report.message
        assert self.lakehouse.rows(GOLD, "place", "orders", "total") == self.from_scratch()
        return report

    def counted_again(self) -> RowCounts:
        """Return the counts of the last batch as another driver finds them, if the batch's own has died."""
        context = JobContext(self.lakehouse.args(GOLD))
        position = stream_position(context.spec, context.paths, context.ops.ledger)
        assert position is not None
        assert position.last is not None
        return GoldAggregate(context).close(position.last).rows

    def plan(self) -> str:
        self.certify()
        settings = Settings(root=self.lakehouse.paths.root, tables=self.lakehouse.folder / "tables")
        catalog = load_catalog(settings.tables)
        return Planner(catalog, settings).advise(catalog.spec(GOLD), day(1)).message

    def batches(self) -> dict[str | None, int]:
        return dict(self.lakehouse.rows(GOLD, "place", "_batch_seq"))

    def from_scratch(self) -> list[tuple[object, ...]]:
        orders = open_table(self.path).to_pyarrow_table()  # noqa: F841  DuckDB finds it by its name
        groups = "SELECT place, count(*), CAST(sum(amount) AS BIGINT) FROM orders GROUP BY place"
        return sorted(duckdb.sql(groups).fetchall(), key=repr)

    def change(self, random: Random) -> None:
        """Change some rows, or the table as a whole, in one of the ways in which other tools do."""
        number, place = random.randrange(len(PLACES)), random.choice(PLACES)
        match random.choice(("insert", "move", "delete", "restore", "optimize", "feed", "no feed")):
            case "insert":
                self.insert(*((number, random.choice(PLACES), 1) for _ in range(random.randrange(1, 4))))
            case "move":
                literal = "NULL" if place is None else f'"{place}"'
                self.sql(f"UPDATE {{}} SET place = {literal}, amount = amount + 1 WHERE id = {number}")
            case "delete":
                self.sql(f"DELETE FROM {{}} WHERE id = {number}")
            case "restore":
                self.sql(f"RESTORE TABLE {{}} TO VERSION AS OF {random.randrange(1, self.version + 1)}")
            case "optimize":
                self.sql("OPTIMIZE {}")
            case "feed":
                self.sql("ALTER TABLE {} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
            case "no feed":
                self.sql("ALTER TABLE {} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")


@pytest.fixture
def shop(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    for name in ("SMALL", "TRACING"):
        monkeypatch.setattr(refresh_cost, name, 0)
    with own_session({}) as session:
        shop = Shop(lakehouse, session)
        shop.run()
        yield shop


@pytest.mark.parametrize("seed", [1])
def test_the_rows_are_the_same_whatever_is_chosen_and_however_the_source_changed(
    shop: Shop, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh_cost, "LISTED", 1)  # else few values make tables of some kB be computed whole
    random = Random(seed)
    whole = kept = 0
    for _ in range(7):
        choice = random.random() < 0.3
        monkeypatch.setattr(RefreshCost, "is_whole_cheaper", choice)
        for _ in range(random.choice((1, 1, 2))):
            shop.change(random)
        before = shop.batches()
        report = shop.run()
        after = shop.batches()
        whole += any("the whole table was computed" in note for note in report.notes)
        kept += before != after and any(after.get(place) == batch for place, batch in before.items())
    assert whole, "some runs computed all groups"
    assert kept, "some runs computed some groups"


def test_a_run_chooses_by_the_files_that_it_would_read_and_says_so(shop: Shop) -> None:
    for number in range(1, 30):
        shop.insert(*((number, f"{number:02d} {row}", row) for row in range(50)))
    shop.run()
    shop.insert((0, "07 1", 5))
    assert "; incremental, unless it costs more: to trace changes of " in shop.plan()
    report = shop.run()
    assert "; incremental: 1 value of place changed (changes of " in report.message
    figures = report.details["refresh"]
    assert figures["values"] == 1
    assert 0 < figures["read"] < figures["sources"] / 3
    assert figures["incremental"] < figures["whole"]
    assert shop.counted_again() == report.rows
    shop.sql("UPDATE {} SET amount = amount + 1")
    report = shop.run()
    assert report.notes[0].startswith(f"{GOLD}: the whole table was computed: at least ")
    assert "incremental" not in report.message
    assert shop.counted_again() == report.rows, "the log says that all groups were computed"

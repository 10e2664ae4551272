"""The choice between touched and all groups on real Delta: the rows never depend on it, and the run says what it did.

The source is changed by Spark's SQL: with and without a change feed, by RESTORE and by OPTIMIZE. DuckDB computes the
expected groups from all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

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

    def change(self, kind: str, number: int = 2) -> None:
        """Change some rows, or the table as a whole, in one of the ways in which other tools do."""
        match kind:
            case "insert":
                self.insert((number, "a", 1), (number, None, 1), (number, "new", 1))
            case "move":
                self.sql(f'UPDATE {{}} SET place = "b", amount = amount + 1 WHERE id = {number}')
            case "lose":
                self.sql(f"UPDATE {{}} SET place = NULL WHERE id = {number}")
            case "delete":
                self.sql(f"DELETE FROM {{}} WHERE id = {number}")
            case "restore":
                self.sql(f"RESTORE TABLE {{}} TO VERSION AS OF {self.version - 2}")
            case "optimize":
                self.sql("OPTIMIZE {}")
            case "feed" | "no feed":
                is_on = str(kind == "feed").lower()
                self.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES (delta.enableChangeDataFeed = {is_on})")


ROUNDS = (
    (False, ("insert", "move", "delete")),
    (True, ("lose", "optimize")),
    (False, ("no feed", "move", "delete")),
    (False, ("restore", "insert")),
    (True, ("feed", "lose")),
)
"""Whether all groups are computed in a round, and what changes before it; each change is of another row."""


@pytest.fixture
def shop(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    for name in ("SMALL", "TRACING"):
        monkeypatch.setattr(refresh_cost, name, 0)
    with own_session({}) as session:
        shop = Shop(lakehouse, session)
        shop.run()
        yield shop


@pytest.mark.slow
def test_the_rows_are_the_same_whatever_is_chosen_and_however_the_source_changed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh_cost, "LISTED", 1)  # else few values make tables of some kB be computed whole
    changed = count(1)
    for is_whole, changes in ROUNDS:
        monkeypatch.setattr(RefreshCost, "is_whole_cheaper", is_whole)
        for kind in changes:
            shop.change(kind, next(changed))
        before = shop.batches()
        report = shop.run()
        after = shop.batches()
        assert any("the whole table was computed" in note for note in report.notes) == is_whole
        assert any(after.get(place) == batch for place, batch in before.items()) != is_whole


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

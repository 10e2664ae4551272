"""More touched values than are listed are computed by ranges that contain them, with the same rows as from scratch."""

from __future__ import annotations

import duckdb
import pytest

from include.catalog import load_catalog
from include.contracts.job.report import JobReport
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import open_table
from include.control.planning import refresh_cost
from include.control.planning.planner import stream_position
from spark_jobs.delta_io.tables import sql_path
from spark_jobs.layers.gold.gold import GoldAggregate
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.session import own_session
from tests.support.documents.specs import sums_document, typed_documents
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import judge

GOLD, SILVER, COLUMNS = "gold.baskets", "silver.orders", {"id": "int", "basket": "bigint", "amount": "int"}
LISTED = 20


def test_many_new_groups_and_an_old_one_are_computed_and_no_others(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"SMALL": 0, "TRACING": 0, "LISTED": 1, "MOST_LISTED": LISTED}.items():
        monkeypatch.setattr(refresh_cost, name, value)
    lakehouse.specs(*typed_documents(COLUMNS), sums_document(GOLD, "basket"))
    path = lakehouse.paths.table(SILVER)
    orders = "SELECT CAST(id AS INT) AS id, id div 10 AS basket, 1 AS amount FROM range({}, {})"
    with own_session({}) as session:
        first = session.sql(orders.format(0, 20_000))
        first.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(path))
        run(lakehouse)
        session.sql(f"INSERT INTO {sql_path(path)} {orders.format(20_000, 22_000)}").collect()
        session.sql(f"UPDATE {sql_path(path)} SET amount = 2 WHERE id = 77").collect()
        report = run(lakehouse)
        assert report.rows.read == 201, "200 new baskets and an old one"
        assert "at least 21 values of basket changed, in 2 ranges (changes of " in report.message
        assert report.details["refresh"]["ranges"] == 2
        assert counted_again(lakehouse) == report.rows
        session.sql(f"UPDATE {sql_path(path)} SET basket = NULL WHERE id > 21000").collect()
        report = run(lakehouse)
        assert report.details["refresh"]["ranges"] == 2, "one of them is null"
        assert report.rows.read == 2, "the basket of order 21000, and the orders without one"
        monkeypatch.undo()
        session.sql(f"UPDATE {sql_path(path)} SET amount = 3 WHERE basket % 2 = 0").collect()
        report = run(lakehouse)
        assert report.rows.read == 1_051, "a small table keeps each row that no change touches"


def run(lakehouse: Lakehouse) -> JobReport:
    path = lakehouse.paths.table(SILVER)
    judge(lakehouse.paths.root, load_catalog(lakehouse.folder / "tables").spec(SILVER), latest_version(path))
    report = lakehouse.run(GOLD)
    assert report.exit_code == 0, report.message
    orders = open_table(path).to_pyarrow_table()  # noqa: F841  DuckDB finds it by its name
    groups = "SELECT basket, count(*), CAST(sum(amount) AS BIGINT) FROM orders GROUP BY basket"
    rows = lakehouse.rows(GOLD, "basket", "orders", "total")
    assert rows == sorted(duckdb.sql(groups).fetchall(), key=repr)
    return report


def counted_again(lakehouse: Lakehouse) -> object:
    """Return the counts of the last batch as another driver finds them, if the batch's own has died."""
    context = JobContext(lakehouse.args(GOLD))
    position = stream_position(context.spec, context.paths, context.ops.ledger)
    assert position is not None
    assert position.last is not None
    return GoldAggregate(context).close(position.last).rows

"""The files of a gold table follow the values of its refresh, so that a later refresh rewrites few of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from include.catalog import load_catalog
from include.contracts.job.report import JobReport
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import open_table
from include.control.maintenance import health
from include.control.planning import refresh_cost
from include.control.planning.refresh_cost import RefreshCost
from spark_jobs.delta_io.tables import sql_path
from spark_jobs.runtime.session import own_session
from tests.support.documents.specs import typed_documents
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import judge

SILVER, COLUMNS = "silver.orders", {"id": "int", "day": "date", "amount": "int"}
ROWS, DAYS, FILE = 4_000, 200, 1_500
TABLES: dict[str, dict[str, Any]] = {
    "gold.sums": {
        "group_by": {"day": "o.day", "id": "o.id"},
        "measures": {"total": "sum(o.amount)"},
        "refresh_by": "day",
        "refresh_from": {"o": "day"},
    },
    "gold.places": {"query": "SELECT id, amount, rank() OVER (PARTITION BY day ORDER BY id) AS place, day FROM o"},
    "gold.by_year": {
        "query": "SELECT id, amount, day, CAST(year(day) AS INT) AS year FROM o",
        "refresh_by": "day",
        "partitioned_by": ["year"],
    },
}


def test_a_change_of_the_newest_day_rewrites_few_of_the_files(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LEAST_COMPUTED_FILE", FILE)
    for name, value in {"SMALL": 0, "TRACING": 0, "LISTED": 1}.items():
        monkeypatch.setattr(refresh_cost, name, value)
    monkeypatch.setattr(RefreshCost, "is_whole_cheaper", False)
    lakehouse.specs(
        *typed_documents(COLUMNS),
        *({"table": table, "sources": {"o": {"table": SILVER}}, **keys} for table, keys in TABLES.items()),
    )
    path = lakehouse.paths.table(SILVER)
    with own_session({}) as session:
        day = f"date_add(DATE'2012-10-01', CAST(id % {DAYS} AS INT)) AS day"
        rows = session.sql(f"SELECT CAST(id AS INT) AS id, {day}, 1 AS amount FROM range({ROWS})")
        rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(path))
        for table in TABLES:
            run(lakehouse, table)
            spans = days_of_files(lakehouse, table)
            assert len(spans) >= ROWS * 3 / FILE, f"{table} has several files"
            assert max(spans) <= DAYS / 3, f"the files of {table} follow the days"
        session.sql(f"UPDATE {sql_path(path)} SET amount = 2 WHERE id % {DAYS} = {DAYS - 1}").collect()
        for table in TABLES:
            report = run(lakehouse, table)
            figures = report.details["refresh"]
            assert (figures["values"], report.rows.read) == (1, ROWS // DAYS)
            assert 0 < figures["rewritten"] < figures["table"] / 4


def run(lakehouse: Lakehouse, table: str) -> JobReport:
    spec = load_catalog(lakehouse.folder / "tables").spec(SILVER)
    judge(lakehouse.paths.root, spec, latest_version(lakehouse.paths.table(SILVER)))
    report = lakehouse.run(table)
    assert report.exit_code == 0, report.message
    return report


def days_of_files(lakehouse: Lakehouse, table: str) -> list[int]:
    """Return how many days there are from the least to the greatest day of each file."""
    files = pa.table(open_table(lakehouse.paths.table(table)).get_add_actions(flatten=True))
    ends = zip(files["min.day"].to_pylist(), files["max.day"].to_pylist(), strict=True)
    return [(last - first).days for first, last in ends]

"""Queries whose form Spark and sqlglot read differently, on real Delta: each refresh gives what a computation gives."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from deltalake import DeltaTable

from include.contracts.job.args import Job
from tests.support.documents.specs import bronze_document, query_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

SILVER, GOLD = "silver.orders", "gold.last_orders"
PLACE = {"type": "struct<city:string,at:struct<zip:int>>"}


def days(lakehouse: Lakehouse) -> list[int]:
    """Run gold for two days, then for one more with a change of the first; return how many rows each run computed."""
    rome, oslo, bern = (
        {"city": city, "at": {"zip": number}} for number, city in enumerate(("Rome", "Oslo", "Bern"), 1)
    )
    of_first = [order(1, 5, 1, place=rome), order(2, 7, 1), order(3, 9, 13, place=oslo)]
    given(lakehouse, SILVER, [*of_first, order(6, 2, 13, of_day=3, place=bern)], 1)
    reports = [lakehouse.run(GOLD, 1)]
    given(lakehouse, SILVER, [order(4, 8, 1, of_day=2, place=rome), order(2, 1, 1, 2)], 2)
    reports.append(lakehouse.run(GOLD, 2))
    assert [report.exit_code for report in reports] == [0, 0], [report.message for report in reports]
    return [report.rows.read for report in reports]


def specs(lakehouse: Lakehouse, **changes: Any) -> None:
    bronze, silver = bronze_document(), silver_document()
    for document in (bronze, silver):
        document["columns"]["place"] = PLACE
    lakehouse.specs(bronze, silver, query_document(**changes))


PIVOTED = "(SELECT day, hour(event_at) AS at, amount FROM o)"
FORMS: dict[str, tuple[dict[str, Any], list[int], set[tuple[Any, ...]]]] = {
    "a row is counted once in each window of time": (
        {
            "query": "SELECT window.start AS h, count(*) AS n FROM o GROUP BY window(event_at, '12 hours')",
            "refresh_by": "h",
        },
        [3, 2],
        {("01 00", 2), ("01 12", 1), ("02 00", 1), ("03 12", 1)},
    ),
    "the largest two orders of each day that changed": (
        {
            "query": "SELECT day, order_id, amount FROM o -- the largest\n"
            "QUALIFY row_number() OVER (PARTITION BY day ORDER BY amount DESC, order_id) <= 2;",
            "refresh_by": "day",
        },
        [3, 3],
        {("01 00", "o1", 5), ("01 00", "o3", 9), ("02 00", "o4", 8), ("03 00", "o6", 2)},
    ),
    "refreshed by a field of a struct: rows without a place, and those of the changed zip": (
        {
            "query": "SELECT o.place.at.zip AS zip, max(place.city) AS city, count(*) AS n FROM o "
            "GROUP BY o.place.at.zip",
            "refresh_by": "zip",
        },
        [4, 2],
        {(1, "Rome", 2), (2, "Oslo", 1), (3, "Bern", 1), (None, None, 1)},
    ),
    "a pivot is computed for the days that changed": (
        {
            "query": f"SELECT day, early, late FROM {PIVOTED} PIVOT (sum(amount) FOR at IN (1 AS early, 13 AS late))",
            "refresh_by": "day",
        },
        [2, 2],
        {("01 00", 6, 9), ("02 00", 8, None), ("03 00", None, 2)},
    ),
}


@pytest.mark.parametrize(("stated", "computed", "rows"), FORMS.values(), ids=FORMS)
def test_a_change_computes_its_values_of_a_query_of_any_form(
    lakehouse: Lakehouse, stated: dict[str, Any], computed: list[int], rows: set[tuple[Any, ...]]
) -> None:
    specs(lakehouse, **stated)
    assert days(lakehouse) == computed
    table = DeltaTable(str(lakehouse.paths.table(GOLD))).to_pyarrow_table()
    found = table.select([name for name in table.column_names if not name.startswith("_")]).to_pylist()
    texts = [tuple(f"{v:%d %H}" if isinstance(v, date) else v for v in row.values()) for row in found]
    assert (set(texts), len(texts)) == (rows, len(rows))
    assert lakehouse.run(GOLD, job=Job.TABLE_VERIFY).details["differing"] == 0

"""Queries whose form Spark and sqlglot read differently, on real Delta: each refresh gives what a computation gives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from include.contracts.job.args import Job
from tests.support.documents.specs import bronze_document, query_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.last_orders"
PLACE = {"type": "struct<city:string,at:struct<zip:int>>"}


def days(lakehouse: Lakehouse) -> list[int]:
    """Deliver a day, then another one with a change of the first; return how many rows each run of gold computed."""
    place = {"city": "Rome", "at": {"zip": 1}}
    first = [order(1, 5, 1, place=place), order(2, 7, 1), order(3, 9, 13, place={"city": "Oslo", "at": {"zip": 2}})]
    given(lakehouse, SILVER, first, 1)
    reports = [lakehouse.run(GOLD, 1)]
    given(lakehouse, SILVER, [order(4, 8, 1, of_day=2, place=place), order(2, 1, 1, 2)], 2)
    reports.append(lakehouse.run(GOLD, 2))
    assert [report.exit_code for report in reports] == [0, 0], [report.message for report in reports]
    return [report.rows.read for report in reports]


def specs(lakehouse: Lakehouse, **changes: Any) -> None:
    bronze, silver = bronze_document(), silver_document()
    for document in (bronze, silver):
        document["columns"]["place"] = PLACE
    lakehouse.specs(bronze, silver, query_document(**changes))


@pytest.mark.parametrize(
    ("window", "refresh", "counts", "computed"),
    [
        ("window(event_at, '12 hours')", {"refresh_by": "h"}, {"01 00": 2, "01 12": 1, "02 00": 1}, [2, 2]),
        (
            "window(event_at, '2 hours', '1 hour')",
            {},
            {"01 00": 2, "01 01": 2, "01 12": 1, "01 13": 1, "02 00": 1, "02 01": 1},
            [4, 6],
        ),
        ("session_window(event_at, '30 minutes')", {}, {"01 01": 2, "01 13": 1, "02 01": 1}, [2, 3]),
    ],
)
def test_a_row_is_counted_once_in_each_window_of_time(
    lakehouse: Lakehouse, window: str, refresh: dict[str, str], counts: dict[str, int], computed: list[int]
) -> None:
    query = f"SELECT {window.partition('(')[0]}.start AS h, count(*) AS n FROM o GROUP BY {window}"
    specs(lakehouse, query=query, **refresh)
    assert days(lakehouse) == computed
    assert {f"{h:%d %H}": n for h, n in lakehouse.rows(GOLD, "h", "n")} == counts


def test_qualify_keeps_the_largest_order_of_each_day_that_changes(lakehouse: Lakehouse) -> None:
    largest = "QUALIFY row_number() OVER (PARTITION BY day ORDER BY amount DESC, order_id) <= 2"
    specs(lakehouse, query=f"SELECT day, order_id, amount FROM o -- the largest\n{largest};", refresh_by="day")
    assert days(lakehouse) == [2, 3]
    assert [(f"{day:%d}", amount) for day, amount in lakehouse.rows(GOLD, "day", "amount")] == [
        ("01", 5),
        ("01", 9),
        ("02", 8),
    ]
    assert lakehouse.run(GOLD, job=Job.TABLE_VERIFY).details["differing"] == 0


def test_a_query_is_refreshed_by_a_field_of_a_struct(lakehouse: Lakehouse) -> None:
    query = "SELECT o.place.at.zip AS zip, max(place.city) AS city, count(*) AS n FROM o GROUP BY o.place.at.zip"
    specs(lakehouse, query=query, refresh_by="zip")
    assert days(lakehouse) == [3, 2], "the rows without a place, and those of the changed zip"
    assert Counter(lakehouse.rows(GOLD, "zip", "city", "n")) == Counter(
        [(1, "Rome", 2), (2, "Oslo", 1), (None, None, 1)]
    )
    assert lakehouse.run(GOLD, job=Job.TABLE_VERIFY).details["differing"] == 0


def test_a_pivot_is_computed_for_the_days_that_changed(lakehouse: Lakehouse) -> None:
    orders = "(SELECT day, hour(event_at) AS at, amount FROM o)"
    query = f"SELECT day, early, late FROM {orders} PIVOT (sum(amount) FOR at IN (1 AS early, 13 AS late))"
    specs(lakehouse, query=query, refresh_by="day")
    assert days(lakehouse) == [1, 2]
    given(lakehouse, SILVER, [order(5, 3, 13, of_day=2)], 3)
    assert lakehouse.run(GOLD, 3).rows.read == 1, "the first day is kept"
    assert [row[1:] for row in lakehouse.rows(GOLD, "day", "early", "late")] == [(6, 9), (8, 3)]
    assert lakehouse.run(GOLD, job=Job.TABLE_VERIFY).details["differing"] == 0

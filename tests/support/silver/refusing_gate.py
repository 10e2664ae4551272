"""A lakehouse of orders whose silver gate refuses the second day, and the content that this day may change."""

from __future__ import annotations

from typing import Any

from deltalake import DeltaTable

from tests.support.documents.specs import Document, bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order, tombstones_path

BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.revenue_daily"
COUNT = "expect_table_row_count_to_be_between"
NOT_NEGATIVE = {
    "expect_column_values_to_be_between": {"column": "amount", "min_value": 0},
    "action": "quarantine",
    "reason": "nobody pays less than nothing",
}


def silver(most_rows: int, **changes: Any) -> Document:
    """Return a silver spec whose gate refuses a version with more rows; an amount of zero is a delete."""
    at_most = {COUNT: {"max_value": most_rows}, "action": "fail", "reason": f"{most_rows} at most"}
    rules = {"expectations": [at_most, NOT_NEGATIVE], "apply_as_deletes": "amount = 0"}
    return silver_document(**{"on_refusal": "restore", **rules, **changes})


DAYS = {
    1: ("a.json", [order(1, 1), order(2, 2)]),
    2: ("b.json", [order(at, amount, of_day=2) for at, amount in {1: 10, 2: 0, 3: 3, 4: 4, 5: -5}.items()]),
}
"""Two days of orders: the second changes a row, deletes a row, adds two, and has a row that is refused."""


def load_into_bronze(shop: Lakehouse, *days: int) -> None:
    for number in days:
        name, rows = DAYS[number]
        given(shop, BRONZE, rows, number, name)


def refusing_shop(shop: Lakehouse) -> Lakehouse:
    """Load one day into all layers and the second day into bronze; silver may have two rows."""
    shop.specs(bronze_document(), silver(2), gold_document())
    load_into_bronze(shop, 1)
    assert given(shop, SILVER, DAYS[1][1]).certified_version == 1
    assert shop.run(GOLD).certified_version == 1
    load_into_bronze(shop, 2)
    return shop


def content_without_refusal(shop: Lakehouse) -> dict[str, object]:
    """Load both days with a gate that refuses nothing, and return the content."""
    shop.specs(bronze_document(), silver(3), gold_document())
    for number in DAYS:
        load_into_bronze(shop, number)
        shop.run_all(number, SILVER, GOLD)
    return content(shop)


def content(shop: Lakehouse) -> dict[str, object]:
    """Return all that the second day may change: rows, tombstones, quarantined rows, groups."""
    tombstones = str(tombstones_path(shop, SILVER))
    deleted = DeltaTable(tombstones).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(tombstones) else []
    return {
        "rows": shop.rows(SILVER, "order_id", "amount", "_sequence"),
        "deleted": sorted(row["order_id"] for row in deleted),
        "refused": sorted((row["row_id"], row["record"]) for row in shop.quarantine(SILVER)),
        "groups": shop.rows(GOLD, "day", "orders", "revenue"),
    }

"""A lakehouse of orders whose silver gate refuses the second day, and the content that this day may change."""

from __future__ import annotations

from typing import Any

from deltalake import DeltaTable

from tests.support.documents.specs import Document, bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse, order, tombstones_path

BRONZE, SILVER, GOLD = TABLES = "bronze.orders", "silver.orders", "gold.revenue_daily"
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


def deliver_two_days(shop: Lakehouse) -> None:
    """Deliver two days; the second changes a row, deletes a row, adds two, and has a row that is refused."""
    shop.deliver(1, "a.json", [order(1, 1), order(2, 2)])
    amounts = {1: 10, 2: 0, 3: 3, 4: 4, 5: -5}
    shop.deliver(2, "b.json", [order(number, amount, of_day=2) for number, amount in amounts.items()])


def refusing_shop(shop: Lakehouse) -> Lakehouse:
    """Load one day into all layers and the second day into bronze; silver may have two rows."""
    shop.specs(bronze_document(), silver(2), gold_document())
    deliver_two_days(shop)
    assert [report.certified_version for report in shop.run_all(1, *TABLES)] == [1, 1, 1]
    assert shop.run(BRONZE, 2).certified_version == 2
    return shop


def content_without_refusal(shop: Lakehouse) -> dict[str, object]:
    """Load both days with a gate that refuses nothing, and return the content."""
    shop.specs(bronze_document(), silver(3), gold_document())
    deliver_two_days(shop)
    for number in (1, 2):
        shop.run_all(number, *TABLES)
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

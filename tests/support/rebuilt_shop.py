"""A shop whose tables are rebuilt: three days of orders, and the rows that readers see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from include.control.gates.gates import Gates
from include.control.log.stored_tables import open_table
from include.errors import ExitCode
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse, order, tombstones_path

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")
AT_LEAST_0 = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
DAYS: dict[int, list[dict[str, Any]]] = {
    1: [order(1, 5, 8), order(2, 7, 8), order(3, -1, 8), order(None, 4, 8)],
    2: [order(1, None, 9, op="delete"), order(4, 2, 9, of_day=2)],
    3: [order(1, 6, 8, seq=2), order(2, 9, 10), order(5, 1, 10, of_day=3)],
}
"""Day -> orders. Day 2 deletes o1, and day 3 has an older event of o1."""


def write_shop_specs(shop: Lakehouse, kind: str = "int", **silver: Any) -> None:
    """Write the specs of the shop, with `kind` as the type of the amount and these keys of silver."""

    def typed(document: dict[str, Any]) -> dict[str, Any]:
        return {**document["columns"], "amount": {"type": kind}}

    bronze = {**typed(bronze_document()), "op": {"type": "string"}}
    shop.specs(
        bronze_document(columns=bronze),
        silver_document(
            columns=typed(silver_document()), apply_as_deletes="op = 'delete'", expectations=[AT_LEAST_0], **silver
        ),
        gold_document(),
    )


def load_days(shop: Lakehouse, *days: int) -> None:
    """Deliver the orders of these days, and run all tables after each day."""
    for number in days:
        shop.deliver(number, "a.json", DAYS[number])
        for report in shop.run_all(number, *TABLES):
            assert report.exit_code is ExitCode.OK, report.message
            assert report.rows.are_conserved


def visible_rows(shop: Lakehouse) -> dict[str, Any]:
    """Return the rows of the certified versions, the refused rows, and the deleted keys (`dead`)."""
    columns = {
        SILVER: ("order_id", "amount", "day"),
        GOLD: ("day", "orders", "revenue"),
        BRONZE: ("order_id", "amount"),
    }
    rows = {}
    for table, names in columns.items():
        at = Gates(shop.paths).certified(table)
        records = open_table(shop.paths.table(table), version=at).to_pyarrow_table(columns=list(names)).to_pylist()
        rows[table] = sorted((tuple(row.values()) for row in records), key=repr)
    dead = open_table(tombstones_path(shop, SILVER)).to_pyarrow_table(columns=["order_id"]).to_pylist()
    return {**rows, "refused": sorted(row.record for row in shop.waiting(SILVER)), "dead": dead}


def fresh_shop(folder: Path, *days: int, **changes: Any) -> Lakehouse:
    """Return a new lakehouse that has had only these specs, with the orders of these days."""
    shop = Lakehouse(folder)
    write_shop_specs(shop, **changes)
    load_days(shop, *days)
    return shop


def rows_of_fresh_shop(folder: Path, *days: int, **changes: Any) -> dict[str, Any]:
    """Return the visible rows of a new lakehouse that has had only these specs."""
    return visible_rows(fresh_shop(folder, *days, **changes))

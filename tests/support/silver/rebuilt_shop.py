"""A shop whose tables are rebuilt: three days of orders, and the rows that readers see."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from millrace.control.gates.gates import Gates
from millrace.control.log.stored_tables import is_table, open_table
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order, tombstones_path

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")
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
        shop.run_well(number, *TABLES)


def given_days(shop: Lakehouse, *days: int) -> None:
    """Give bronze the orders of these days, and run silver and gold after each day."""
    for number in days:
        given(shop, BRONZE, DAYS[number], number, "a.json")
        shop.run_well(number, SILVER, GOLD)


def right_rows(last: int) -> dict[str, Any]:
    """Return the visible rows after days 1 to `last`, whatever the keys of silver and the type of the amount are."""
    received = [(event["order_id"], event["amount"]) for number in range(1, last + 1) for event in DAYS[number]]
    first, second, third = (date(2013, 1, number) for number in (1, 2, 3))
    silver = {
        1: [("o1", 5, first), ("o2", 7, first)],
        2: [("o2", 7, first), ("o4", 2, second)],
        3: [("o2", 9, first), ("o4", 2, second), ("o5", 1, third)],
    }[last]
    days = sorted({day for _, _, day in silver})
    amounts = {day: [amount for _, amount, of_day in silver if of_day == day] for day in days}
    gold = [(day, len(amounts[day]), sum(amounts[day])) for day in days]
    dead = [{"order_id": "o1"}] if last > 1 else []
    return {BRONZE: sorted(received, key=repr), SILVER: silver, GOLD: gold, "refused": [-1, 4], "dead": dead}


def visible_rows(shop: Lakehouse) -> dict[str, Any]:
    """Return the rows of the certified versions, the amounts of the refused rows, and the deleted keys (`dead`)."""
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
    path = tombstones_path(shop, SILVER)
    dead = open_table(path).to_pyarrow_table(columns=["order_id"]).to_pylist() if is_table(path) else []
    return {**rows, "refused": sorted(json.loads(row.record)["amount"] for row in shop.waiting(SILVER)), "dead": dead}

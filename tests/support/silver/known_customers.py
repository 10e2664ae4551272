"""Orders whose customers must be known: rows of `silver.orders` wait for `silver.customers`."""

from __future__ import annotations

from typing import Any

from tests.support.documents.specs import Document, bronze_document, silver_document
from tests.support.lakehouse import order

BRONZE_CUSTOMERS, CUSTOMERS = "bronze.customers", "silver.customers"
BRONZE_ORDERS, ORDERS = "bronze.orders", "silver.orders"
REASON = "orders of unknown customers wait"
UNKNOWN = f"expect_column_values_to_exist_in_other_table(customer_id in silver.customers): {REASON}"
"""Why a row of `silver.orders` is in quarantine."""


def known_customer(**arguments: Any) -> Document:
    """Return the rule of `silver.orders` that its customer exists."""
    of_rule = {"column": "customer_id", "other_table": CUSTOMERS, "other_column": "customer_id", **arguments}
    return {"expect_column_values_to_exist_in_other_table": of_rule, "action": "quarantine", "reason": REASON}


def shop_documents(rule: Document | None = None, **orders: Any) -> list[Document]:
    """Return the specs of customers and orders, in bronze and silver; deletes are events with `op = 'delete'`."""
    more = {"customer_id": {"type": "string"}, "op": {"type": "string"}}
    silver = silver_document()["columns"]
    times = {name: silver[name] for name in ("event_at", "event_seq")}
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    return [
        bronze_document(BRONZE_CUSTOMERS, columns={**more, **times}),
        silver_document(
            CUSTOMERS,
            source=BRONZE_CUSTOMERS,
            keys=["customer_id"],
            apply_as_deletes="op = 'delete'",
            columns={"customer_id": {"type": "string", "nullable": False}, **times},
        ),
        bronze_document(source=source, columns={**bronze_document()["columns"], **more}),
        silver_document(
            apply_as_deletes="op = 'delete'",
            columns={**silver, "customer_id": {"type": "string"}},
            expectations=[rule or known_customer()],
            **orders,
        ),
    ]


def customer(number: int, seq: int, **more: Any) -> dict[str, Any]:
    """Return an event of a customer."""
    return {"customer_id": f"c{number}", "event_at": "2013-01-01T00:00:00Z", "event_seq": seq, **more}


def order_of(number: int, of_customer: int | None, seq: int, **more: Any) -> dict[str, Any]:
    """Return an event of an order; its amount is its sequence."""
    customer_id = None if of_customer is None else f"c{of_customer}"
    return order(number, seq, seq=seq, customer_id=customer_id, **more)

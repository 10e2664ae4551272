"""Orders and customers in silver, a silver table that joins them, and a gold table of that."""

from __future__ import annotations

from typing import Any

import yaml

from embedded.clone import CLONE
from millrace.control.log.stored_tables import open_table
from millrace.specs.files import SpecLoader
from tests.support.documents.specs import Document, bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse
from tests.support.model_database import model_database

FEEDS = ("bronze.orders", "bronze.customers")
ORDERS, CUSTOMERS, ENRICHED, GOLD = "silver.orders", "silver.customers", "silver.orders_enriched", "gold.by_segment"
CHAIN = (*FEEDS, ORDERS, CUSTOMERS, ENRICHED, GOLD)
"""All tables in build order."""

EXAMPLE: Document = yaml.load(
    (CLONE / "docs/examples/queries/silver/shop/orders_enriched.yaml").read_text(encoding="utf-8"), SpecLoader
)
"""The spec that the guide quotes: orders with the segment of their customer."""

_COLUMNS = {
    ORDERS: {"order_id": "string", "customer_id": "string", "amount": "int"},
    CUSTOMERS: {"customer_id": "string", "segment": "string"},
}


def enriched_document(table: str = ENRICHED, **changes: Any) -> Document:
    """Return the example as the spec of a table."""
    return {**EXAMPLE, "table": table, **changes}


def enriched_orders(**changes: Any) -> list[Document]:
    """Return the specs of all tables; `changes` are of the table that joins. A row with `gone` deletes its key."""
    documents = []
    for table, columns in _COLUMNS.items():
        bronze, stored = table.replace("silver", "bronze"), {**columns, "event_seq": "int"}
        typed = {name: {"type": kind} for name, kind in stored.items()}
        received = bronze_document(bronze, columns={**typed, "gone": {"type": "boolean"}})
        received["source"] = {**received["source"], "on_changed_file": "replace"}
        events = {"source": bronze, "sequence_by": ["event_seq"], "apply_as_deletes": "gone"}
        documents += [received, silver_document(table, columns=typed, keys=[next(iter(columns))], **events)]
    of_gold = {
        "sources": {"e": {"table": ENRICHED}},
        "refresh_by": "segment",
        "refresh_from": {"e": "segment"},
        "group_by": {"segment": "e.segment"},
        "measures": {"orders": "count(*)", "revenue": "sum(e.amount)"},
    }
    return [*documents, enriched_document(**changes), gold_document(GOLD, **of_gold)]


def order_row(number: int, amount: int, customer: int | None, seq: int, *, gone: bool = False) -> dict[str, Any]:
    """Return an event of an order."""
    customer_id = None if customer is None else f"c{customer}"
    return {"order_id": f"o{number}", "customer_id": customer_id, "amount": amount, "event_seq": seq, "gone": gone}


def customer_row(number: int, segment: str | None, seq: int, *, gone: bool = False) -> dict[str, Any]:
    """Return an event of a customer."""
    return {"customer_id": f"c{number}", "segment": segment, "event_seq": seq, "gone": gone}


def enriched_rows(lakehouse: Lakehouse) -> list[tuple[Any, ...]]:
    """Return the stored rows of the table that joins."""
    return lakehouse.rows(ENRICHED, "order_id", "amount", "segment", "is_large")


def rows_from_scratch(lakehouse: Lakehouse) -> list[tuple[Any, ...]]:
    """Return what DuckDB computes from the newest rows of both sources."""
    with model_database() as connection:
        for alias, table in (("o", ORDERS), ("c", CUSTOMERS)):
            connection.register(alias, open_table(lakehouse.paths.table(table)).to_pyarrow_table())
        return sorted(connection.sql(EXAMPLE["query"]).fetchall(), key=repr)

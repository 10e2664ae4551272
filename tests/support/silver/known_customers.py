"""Orders whose customers must be known: rows of `silver.orders` wait for `silver.customers`; and a model of both."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from include.contracts.job.report import JobReport
from include.errors import ExitCode
from tests.support.documents.specs import Document, bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

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


def run_well(shop: Lakehouse, *tables: str, **more: Any) -> JobReport:
    """Run tables one after another, and return the report of the last one."""
    reports = shop.run_all(1, *tables, **more)
    assert {report.exit_code for report in reports} == {ExitCode.OK}, [report.message for report in reports]
    return reports[-1]


@dataclass
class ModelOfOrders:
    """A plain model: an event is accepted once its customer is in `silver.customers`, and waits until then."""

    shop: Lakehouse
    chance: Random
    seen: Counter[str] = field(default_factory=Counter)
    sequence: int = 0
    new_orders: list[dict[str, Any]] = field(default_factory=list)
    customers: dict[str, dict[str, Any]] = field(default_factory=dict)
    accepted: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)

    def _events(self, feed: str) -> list[dict[str, Any]]:
        """Return up to three events, each with a random sequence: any of them may be late."""
        rows: list[dict[str, Any]] = []
        for _ in range(self.chance.randint(1, 3)):
            self.sequence += 1
            at = self.chance.randint(0, 50) * 1000 + self.sequence
            op = {"op": "delete"} if self.chance.random() < 0.25 else {}
            of_customer = self.chance.choice([1, 2, 3, 4, None])
            if feed == "customers":
                rows.append(customer(self.chance.randint(1, 4), at, **op))
            else:
                rows.append(order_of(self.chance.randint(1, 5), of_customer, at, **op))
        return rows

    def bring_orders(self) -> None:
        """Add orders to bronze."""
        rows = self._events("orders")
        self.new_orders += rows
        given(self.shop, BRONZE_ORDERS, rows)

    def bring_customers(self) -> None:
        """Merge customers whose events are not late."""
        for event in self._events("customers"):
            before = self.customers.get(event["customer_id"])
            if before is None or before["event_seq"] < event["event_seq"]:
                self.customers[event["customer_id"]] = event
                given(self.shop, CUSTOMERS, [event])

    def merge_orders(self) -> None:
        """Merge the orders, and compare the table, the quarantine and the fate of each event with the model."""
        report = run_well(self.shop, ORDERS)
        known = {name for name, event in self.customers.items() if "op" not in event}
        waited, new = len(self.waiting), self.new_orders
        came = [event for event in self.waiting if event["customer_id"] in known]
        passes = [event for event in new if "op" in event or event["customer_id"] in {*known, None}]
        self.accepted += came + passes
        self.waiting = [event for event in self.waiting + new if event not in self.accepted]
        self.new_orders = []
        last: dict[str, dict[str, Any]] = {}
        for event in sorted(self.accepted, key=lambda event: event["event_seq"]):
            last[event["order_id"]] = event
        rows = [(key, event["event_seq"]) for key, event in last.items() if "op" not in event]
        assert self.shop.rows(ORDERS, "order_id", "amount") == sorted(rows)
        stored = sorted(
            row.record.split('"event_seq":')[1].split("}")[0].split(",")[0] for row in self.shop.waiting(ORDERS)
        )
        assert stored == sorted(str(event["event_seq"]) for event in self.waiting)
        if came or new:
            assert report.rows.read == len(came) + len(new)
            assert report.rows.quarantined == len(new) - len(passes)
        self.seen.update(came=len(came), waited=len(new) - len(passes), stayed=waited - len(came))
        self.seen["deleted while referenced"] += sum(
            event["customer_id"] is not None and event["customer_id"] not in known for event in last.values()
        )

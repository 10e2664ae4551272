"""A silver table with a query over silver tables, on real Delta: it is what its certified sources give, at any time."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.errors import Outcome
from tests.support.given import given
from tests.support.lakehouse import Lakehouse
from tests.support.silver.enriched_orders import (
    CUSTOMERS,
    ENRICHED,
    FEEDS,
    ORDERS,
    customer_row,
    enriched_document,
    enriched_orders,
    enriched_rows,
    order_row,
    rows_from_scratch,
)


@pytest.fixture
def shop(lakehouse: Lakehouse) -> Lakehouse:
    lakehouse.specs(*enriched_orders())
    return lakehouse


def give(shop: Lakehouse, number: int, orders: list[dict[str, Any]], customers: list[dict[str, Any]]) -> None:
    """Write the silver tables that are joined."""
    for table, rows in ((ORDERS, orders), (CUSTOMERS, customers)):
        if rows:
            given(shop, table, rows, number)


def run(shop: Lakehouse, number: int) -> JobReport:
    """Run the table that joins, check it against a computation from scratch, and return the report."""
    report = shop.run_well(number, ENRICHED)
    assert enriched_rows(shop) == rows_from_scratch(shop)
    return report


def test_it_follows_inserts_updates_deletes_late_events_and_changed_customers(shop: Lakehouse) -> None:
    orders = [order_row(1, 5, 1, 10), order_row(2, 6, 2, 10), order_row(3, 3, 1, 10), order_row(4, 7, 9, 10)]
    orders += [order_row(7, 5, 3, 10), order_row(8, 9, 3, 10), order_row(9, 1, 5, 10)]
    customers = {1: "home", 2: "firm", 3: "calm", 5: "old"}
    give(shop, 1, orders, [customer_row(number, segment, 10) for number, segment in customers.items()])
    run(shop, 1)
    rows = [("o1", 5, "home", True), ("o2", 6, "firm", True), ("o4", 7, None, True), ("o7", 5, "calm", True)]
    rows += [("o8", 9, "calm", True), ("o9", 1, "old", False)]
    assert enriched_rows(shop) == rows, "an order of 3 is filtered, and one of an unknown customer has no segment"

    # An update, a delete, a late event that changes nothing, one of a new key, an order that is not filtered now, one
    # that is, and one without a customer.
    more = [order_row(1, 9, 2, 11), order_row(2, 0, 1, 11, gone=True), order_row(4, 1, 1, 2), order_row(3, 4, 1, 12)]
    more += [order_row(5, 2, 2, 1), order_row(8, 3, 9, 20), order_row(6, 8, None, 1)]
    give(shop, 2, more, [customer_row(2, "firm", 9)])
    report = run(shop, 2)
    assert report.rows.read == 4, "the order that only came late, and was superseded, is not computed again"
    assert {row[0] for row in enriched_rows(shop)} == {"o1", "o3", "o4", "o5", "o6", "o7", "o9"}

    # A customer is gone, another one is new, one gets another segment, and one has none any more.
    changed = [customer_row(2, None, 11, gone=True), customer_row(9, "late", 1), customer_row(1, "vip", 11)]
    give(shop, 3, [], [*changed, customer_row(5, None, 11)])
    assert run(shop, 3).rows.read == 5, "the order of the other customer, `o7`, is not computed again"
    segments = {"o1": None, "o3": "vip", "o4": "late", "o5": None, "o6": None, "o7": "calm", "o9": None}
    assert dict(shop.rows(ENRICHED, "order_id", "segment")) == segments
    assert run(shop, 3).outcome is Outcome.NO_OP
    verified = shop.run(ENRICHED, job=Job.TABLE_VERIFY)
    assert (verified.outcome, verified.details["differing"]) == (Outcome.NO_OP, 0), verified.message


def test_it_reads_certified_versions_follows_a_restore_and_is_refused_while_it_has_a_key_twice(shop: Lakehouse) -> None:
    give(shop, 1, [order_row(1, 5, 1, 1)], [customer_row(1, "home", 1)])
    run(shop, 1)
    documents = {document["table"]: document for document in enriched_orders()}
    rule = {"expect_column_max_to_be_between": {"column": "amount", "max_value": 50}, "action": "fail"}
    shop.specs({**documents[ORDERS], "expectations": [rule], "on_refusal": "restore"})
    given(shop, FEEDS[0], [order_row(1, 99, 1, 2)], 2)
    give(shop, 2, [], [customer_row(1, "vip", 2)])
    assert [check.refuses for check in shop.run(ORDERS, 2).checks] == [True]
    run(shop, 2)
    assert shop.rows(ENRICHED, "amount", "segment") == [(5, "vip")], "the refused rows were put back"

    # A join that finds a key twice: the gate refuses that, and readers keep the last version.
    give(shop, 3, [], [customer_row(2, "firm", 1)])
    twice = "SELECT o.order_id, o.amount, c.segment, o.amount >= 5 AS is_large FROM o LEFT JOIN c ON c.segment > ''"
    shop.specs(enriched_document(query=twice))
    report = shop.run(ENRICHED, 3)
    refused = [check for check in report.checks if check.refuses]
    assert [check.rule for check in refused] == ["expect_column_values_to_be_unique(order_id)"]
    assert "a join finds several rows" in refused[0].reason
    assert (report.version, report.certified_version) == (3, 2)


@pytest.mark.slow
def test_a_table_that_was_merged_needs_a_rebuild_to_have_a_query_and_the_other_way_round(shop: Lakehouse) -> None:
    documents = {document["table"]: document for document in enriched_orders()}
    merged = {**documents[ORDERS], "table": ENRICHED}
    shop.specs(merged)
    given(shop, FEEDS[0], [order_row(1, 5, 1, 1)])
    give(shop, 1, [order_row(1, 5, 1, 1)], [customer_row(1, "home", 1)])
    assert shop.run(ENRICHED).outcome is Outcome.COMMITTED
    for document, word in ((documents[ENRICHED], "query: now"), (merged, "is gone")):
        shop.specs(document)
        refused = shop.run(ENRICHED)
        assert (refused.outcome, word in refused.message) == (Outcome.BAD_INPUT, True), refused.message
        assert shop.rebuild(ENRICHED).exit_code == 0
        assert shop.run(ENRICHED).outcome is Outcome.NO_OP
    assert shop.rows(ENRICHED, "order_id", "customer_id") == [("o1", "c1")]

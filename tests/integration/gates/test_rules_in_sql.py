"""Rules in SQL in real runs: a condition quarantines rows, and a query over certified versions refuses a version."""

from __future__ import annotations

from include.errors import Outcome
from tests.support.documents.specs import silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER = "bronze.orders", "silver.orders"


def test_a_condition_quarantines_rows_and_a_query_refuses_the_version(lakehouse: Lakehouse) -> None:
    condition = {
        "expect_sql": "amount >= 0 OR order_id = 'o3'",
        "action": "quarantine",
        "reason": "only o3 is a refund",
    }
    query = {
        "expect_query_to_return_no_rows": {
            "query": "SELECT s.order_id, s.amount FROM {table} s LEFT JOIN {bronze.orders} b "
            "ON b.order_id = s.order_id AND b.amount = s.amount WHERE b.order_id IS NULL OR s.amount > 100"
        },
        "action": "fail",
    }
    lakehouse.specs(silver_document(expectations=[condition, query]))
    bronze = given(lakehouse, BRONZE, [order(1, 5), order(2, -1), order(3, -1), order(4, None)])
    silver = lakehouse.run(SILVER)

    assert silver.outcome is Outcome.COMMITTED
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o1", 5), ("o3", -1), ("o4", None)]
    (waiting,) = lakehouse.waiting(SILVER)
    assert waiting.reasons == ("expect_sql(amount >= 0 OR order_id = 'o3'): only o3 is a refund",)
    (check,) = silver.checks
    # The join finds no row of bronze for the amount that is null.
    assert (check.passed, check.unexpected_rows, check.samples) == (False, 1, ('{"order_id":"o4","amount":null}',))
    assert check.against == f"{BRONZE} version {bronze.version}"
    assert silver.certified_version is None

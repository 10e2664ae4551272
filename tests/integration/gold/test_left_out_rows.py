"""Rows that a source leaves out touch no group: its other expressions need not be right for them."""

from __future__ import annotations

from include.errors import Outcome
from tests.support.documents.specs import gold_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER, GOLD = TABLES = "bronze.orders", "silver.orders", "gold.shares"


def test_a_row_for_which_a_group_cannot_be_computed_is_left_out(lakehouse: Lakehouse) -> None:
    source = {"table": SILVER, "where": "amount <> 0"}
    group = {"refresh_by": "share", "group_by": {"share": "12 div o.amount"}, "refresh_from": {"o": "12 div amount"}}
    lakehouse.specs(gold_document(GOLD, sources={"o": source}, **group, measures={"orders": "count(*)"}))
    given(lakehouse, SILVER, [order(1, 3), order(2, 4), order(3, 0)], 1)
    lakehouse.run(GOLD, 1)
    given(lakehouse, SILVER, [order(4, 0, of_day=2), order(2, 0, 9), order(5, 6, of_day=2)], 2)
    report = lakehouse.run(GOLD, 2)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert lakehouse.rows(GOLD, "share", "orders", "_batch_seq") == [(2, 1, 2), (4, 1, 1)]

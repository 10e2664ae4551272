"""Delta stores an empty text of a partition column as null: no key is doubled by it, and no group."""

from __future__ import annotations

from include.errors import Outcome
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.by_shop"
SHOP = {"shop": {"type": "string"}}


def test_an_empty_text_is_no_key_and_no_group_of_a_partitioned_table(lakehouse: Lakehouse) -> None:
    bronze, silver = bronze_document(), silver_document()
    keys = {"keys": ["shop", "order_id"], "partitioned_by": ["shop"]}
    groups = {"group_by": {"shop": "o.shop"}, "refresh_by": "shop", "refresh_from": {"o": "shop"}}
    by_shop = gold_document(GOLD, **groups, measures={"orders": "count(*)"}, partitioned_by=["shop"])
    bronze = bronze_document(columns={**bronze["columns"], **SHOP})
    lakehouse.specs(bronze, silver_document(columns={**silver["columns"], **SHOP}, **keys), by_shop)
    for number in (1, 2):
        given(lakehouse, BRONZE, [order(1, number, number, shop=""), order(2, number, number, shop="x")], number)
        report = lakehouse.run(SILVER, number)
        assert (report.rows.applied, report.rows.quarantined) == (1, 1)
    assert lakehouse.rows(SILVER, "shop", "order_id", "amount") == [("x", "o2", 2)]
    (row, _) = lakehouse.waiting(SILVER)
    assert "shop is an empty text, which Delta stores as null in a partition column" in row.reasons[0]

    lakehouse.specs({**by_shop, "group_by": {"shop": "substr(o.shop, 2)"}})
    report = lakehouse.run(GOLD)
    assert report.outcome is Outcome.BAD_INPUT, report.message
    assert "gold.by_shop: Delta stores an empty text as null in the partition column shop" in report.message

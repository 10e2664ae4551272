"""An expression of a gold table reads the rows of its batch: the driver runs no other one."""

from __future__ import annotations

from include.control.log.stored_tables import is_table
from include.errors import Outcome
from tests.support.documents.specs import gold_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.revenue_daily"


def test_the_driver_refuses_an_expression_that_reads_a_table_in_another_version(lakehouse: Lakehouse) -> None:
    given(lakehouse, SILVER, [order(1, 5), order(2, 7)], 1)
    average = f"(select avg(amount) from delta.`{lakehouse.paths.table(SILVER)}`)"
    lakehouse.specs(gold_document(sources={"o": {"table": SILVER, "where": f"amount >= {average}"}}))
    report = lakehouse.run(GOLD, 1)
    assert report.outcome is Outcome.BAD_INPUT
    assert "a query within an expression reads a table in a version that no run records" in report.message


def test_a_measure_whose_type_delta_does_not_store_is_named_and_nothing_is_written(lakehouse: Lakehouse) -> None:
    given(lakehouse, SILVER, [order(1, 5)], 1)
    lakehouse.specs(gold_document(measures={"span": "max(o.event_at) - min(o.event_at)"}))
    report = lakehouse.run(GOLD, 1)
    assert report.outcome is Outcome.BAD_SPEC
    assert report.message.startswith(f"{GOLD}: column span is of the type interval day to second, which Delta does not")
    assert not is_table(lakehouse.paths.table(GOLD))

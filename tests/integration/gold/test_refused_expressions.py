"""An expression or a query of a gold table reads the rows of its batch: the driver runs no other one."""

from __future__ import annotations

from include.control.log.stored_tables import is_table
from include.errors import Outcome
from tests.support.documents.specs import gold_document, query_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

SILVER, GOLD, QUERY = "silver.orders", "gold.revenue_daily", "gold.last_orders"


def test_what_reads_anything_but_its_batch_or_cannot_be_stored_is_refused_and_nothing_is_written(
    lakehouse: Lakehouse,
) -> None:
    given(lakehouse, SILVER, [order(1, 5), order(2, 7)], 1)
    average = f"(select avg(amount) from delta.`{lakehouse.paths.table(SILVER)}`)"
    for document, outcome, message in (
        (
            gold_document(sources={"o": {"table": SILVER, "where": f"amount >= {average}"}}),
            Outcome.BAD_INPUT,
            "a query within an expression reads a table in a version that no run records",
        ),
        (
            query_document(QUERY, query="SELECT reflect('java.lang.System', 'getenv', 'HOME') AS home FROM o"),
            Outcome.BAD_INPUT,
            "reflect reaches outside of the sources",
        ),
        (
            gold_document(measures={"span": "max(o.event_at) - min(o.event_at)"}),
            Outcome.BAD_SPEC,
            f"{GOLD}: column span is of the type interval day to second, which Delta does not",
        ),
    ):
        lakehouse.specs(document)
        report = lakehouse.run(document["table"], 1)
        assert (report.outcome, message in report.message) == (outcome, True), report.message
        assert not is_table(lakehouse.paths.table(document["table"]))

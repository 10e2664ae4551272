"""A gold table with a query on real Delta: touched values are replaced, null is one, and a new query computes all."""

from __future__ import annotations

from collections import Counter

from millrace.control.log.stored_tables import is_table
from millrace.control.planning.planner import stream_position
from millrace.errors import Outcome
from millrace_spark.layers.gold.gold import GoldAggregate
from millrace_spark.runtime.context import JobContext
from tests.support.documents.specs import gold_document, query_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

SILVER, OTHERS, GOLD, DAILY = "silver.orders", "silver.others", "gold.last_orders", "gold.revenue_daily"
RANKED = (
    "SELECT day, order_id, amount, rank() OVER (PARTITION BY day ORDER BY amount DESC, order_id) AS place, "
    "(SELECT sum(amount) FROM t) AS total FROM o"
)
"""The orders of each day, the largest first; and the sum of all rows of another source."""


def ranked(lakehouse: Lakehouse) -> list[tuple[object, ...]]:
    rows = sorted(lakehouse.rows(SILVER, "day", "amount", "order_id"), key=lambda row: (repr(row[0]), -row[1], row[2]))
    days = [row[0] for row in rows]
    return sorted(
        ((day, key, amount, at - days.index(day) + 1) for at, (day, amount, key) in enumerate(rows)), key=repr
    )


def test_a_query_is_computed_for_the_values_that_changed_and_whole_if_every_row_may_have(lakehouse: Lakehouse) -> None:
    undated = {**order(9, 1), "day": None}
    lakehouse.specs(
        silver_document(OTHERS),
        query_document(sources={"o": {"table": SILVER}, "t": {"table": OTHERS}}, query=RANKED, refresh_by="day"),
    )
    dated = [order(1, 5), order(2, 7), order(3, 3, of_day=2), order(4, 4, of_day=4)]
    given(lakehouse, SILVER, [*dated, undated], 1)
    given(lakehouse, OTHERS, [order(1, 12)], 1)
    assert lakehouse.run(GOLD, 1).outcome is Outcome.COMMITTED
    assert lakehouse.rows(GOLD, "day", "order_id", "amount", "place") == ranked(lakehouse)

    # One order moves from the first day to the third, one has no day any more, and one without a day is larger.
    moved, lost = order(1, 5, 9, of_day=3), {**order(3, 4, 9, of_day=3), "day": None}
    given(lakehouse, SILVER, [moved, lost, {**order(8, 6, 9), "day": None}], 2)
    report = lakehouse.run(GOLD, 2)
    assert lakehouse.rows(GOLD, "day", "order_id", "amount", "place") == ranked(lakehouse)
    assert (report.rows.read, report.rows.applied, report.notes) == (5, 5, ()), "not the row of the fourth day"
    assert lakehouse.run(GOLD, 2).outcome is Outcome.NO_OP

    given(lakehouse, OTHERS, [order(2, 1)], 3)
    report = lakehouse.run(GOLD, 3)
    assert report.rows.read == 6
    assert report.notes == (
        f"{GOLD}: the whole table was computed: {OTHERS} has changed: the subquery "
        "(SELECT SUM(amount) FROM t) reads all rows",
    )
    assert {total for (total,) in lakehouse.rows(GOLD, "total")} == {13}

    of_others = {"o": {"table": OTHERS}, "t": {"table": OTHERS}}
    with_twice = RANKED.replace(" FROM o", ", amount * 2 AS twice FROM o")
    lakehouse.specs(query_document(query=with_twice, sources=of_others))
    report = lakehouse.run(GOLD, 3)
    assert (report.outcome, report.rows.read) == (Outcome.COMMITTED, 2), report.message
    assert lakehouse.rows(GOLD, "amount", "twice") == [(1, 2), (12, 24)], "the rows of the other source alone"

    lakehouse.specs(query_document(query=RANKED, sources=of_others))
    report = lakehouse.run(GOLD, 3)
    assert report.outcome is Outcome.BAD_INPUT
    assert "query: without twice, which the table has" in report.message


def test_a_query_is_computed_for_the_pairs_of_values_that_changed(lakehouse: Lakehouse) -> None:
    sizes = "SELECT day, amount, count(*) AS n FROM o GROUP BY day, amount"
    lakehouse.specs(query_document(query=sizes, refresh_by=["day", "amount"]))
    given(lakehouse, SILVER, [order(1, 5), order(2, 5), order(3, 7), order(4, 5, of_day=2)], 1)
    lakehouse.run(GOLD, 1)
    # On the first day one of two orders of 5 has now 7, and one without a day is new.
    given(lakehouse, SILVER, [order(1, 7, 9), {**order(5, 5), "day": None}], 2)
    report = lakehouse.run(GOLD, 2)
    groups = Counter(lakehouse.rows(SILVER, "day", "amount"))
    assert len(groups) == 4
    assert Counter(lakehouse.rows(GOLD, "day", "amount", "n")) == Counter((*group, n) for group, n in groups.items())
    batches = {(str(day), amount): batch for day, amount, batch in lakehouse.rows(GOLD, "day", "amount", "_batch_seq")}
    first, second = "2013-01-01", "2013-01-02"
    assert batches == {(first, 5): 2, (first, 7): 2, ("None", 5): 2, (second, 5): 1}, "the other pair of 5 is kept"
    assert report.rows.read == 3

    context = JobContext(lakehouse.args(GOLD))
    position = stream_position(context.spec, context.paths, context.ops.ledger)
    assert position is not None
    assert position.last is not None
    assert GoldAggregate(context).close(position.last).rows == report.rows, "as if its own driver had died"


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
            query_document(GOLD, query="SELECT reflect('java.lang.System', 'getenv', 'HOME') AS home FROM o"),
            Outcome.BAD_INPUT,
            "reflect reaches outside of the sources",
        ),
        (
            gold_document(measures={"span": "max(o.event_at) - min(o.event_at)"}),
            Outcome.BAD_SPEC,
            f"{DAILY}: column span is of the type interval day to second, which Delta does not",
        ),
        (
            # Types that only Spark knows: `lakehouse check` finds the plain ones.
            gold_document(measures={"at": "element_at(array(max(o.event_at)::timestamp_ntz), 1)"}),
            Outcome.BAD_SPEC,
            f"{DAILY}: column at is of the type timestamp_ntz, which needs a newer reader\nWrite cast(<value> AS ",
        ),
        (
            query_document(GOLD, query="SELECT map_from_arrays(array(order_id), array(parse_json('1'))) AS m FROM o"),
            Outcome.BAD_SPEC,
            f"{GOLD}: column m is of the type map<string,variant>, which needs a newer reader\nWrite to_json(<value>)",
        ),
    ):
        lakehouse.specs(document)
        report = lakehouse.run(document["table"], 1)
        assert (report.outcome, message in report.message) == (outcome, True), report.message
        assert not is_table(lakehouse.paths.table(document["table"]))

    lakehouse.specs(gold_document(measures={"at": "max(o.event_at)"}))
    assert lakehouse.run(DAILY, 1).outcome is Outcome.COMMITTED, "nothing is in the way of the corrected spec"

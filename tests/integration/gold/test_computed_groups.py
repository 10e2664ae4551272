"""A change on real Delta computes the groups that depend on it, and no others."""

from __future__ import annotations

import pytest

from millrace.contracts.job.args import Job
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER, HISTORY = "bronze.orders", "silver.orders", "silver.history"
RECENT, GOLD = "gold.recent", "gold.revenue_daily"
DAY = "date_add({0}day, int(0 div {0}amount))"
"""No day can be computed of an amount of zero."""

WINDOW = f"over (order by {DAY.format('o.')} range between interval 2 days preceding and current row)"
RECENT_DOCUMENT = gold_document(
    RECENT,
    sources={"o": {"table": SILVER, "where": "amount <> 0"}},
    refresh_from={"o": DAY.format("")},
    group_by={"day": DAY.format("o.")},
    measures={"recent": f"sum(sum(o.amount)) {WINDOW}"},
    lookback="2 days",
)


def test_a_change_computes_the_groups_of_its_window_and_none_of_a_row_that_a_source_leaves_out(
    lakehouse: Lakehouse,
) -> None:
    lakehouse.specs(RECENT_DOCUMENT)
    given(lakehouse, SILVER, [order(number, number, of_day=number) for number in range(1, 8)], 1)
    lakehouse.run(RECENT, 1)
    given(lakehouse, SILVER, [order(2, 20, hour=1, of_day=2), order(7, 0, hour=1, of_day=7)], 2)
    report = lakehouse.run(RECENT, 2)
    assert (report.outcome, report.notes) == (Outcome.COMMITTED, ())
    recent = {day.day: (total, batch) for day, total, batch in lakehouse.rows(RECENT, "day", "recent", "_batch_seq")}
    assert recent == {1: (1, 1), 2: (21, 2), 3: (24, 2), 4: (27, 2), 5: (12, 1), 6: (15, 1)}


def test_groups_of_floats_are_all_computed_and_a_sample_of_them_is_compared(lakehouse: Lakehouse) -> None:
    """The text 0.1 equals no float: this group stayed as it was, and no sample had it."""
    by_rate = {"refresh_by": "rate", "refresh_from": {"o": "cast(amount / 10 as float)"}}
    grouped = {"group_by": {"rate": "cast(o.amount / 10 as float)"}, "measures": {"orders": "count(*)"}}
    lakehouse.specs(gold_document(**by_rate, **grouped))
    given(lakehouse, SILVER, [order(1, 1)], 1)
    lakehouse.run(GOLD, 1)
    given(lakehouse, SILVER, [order(2, 1)], 2)
    report = lakehouse.run(GOLD, 2)
    assert [(round(rate, 6), orders) for rate, orders in lakehouse.rows(GOLD, "rate", "orders")] == [(0.1, 2)]
    assert report.notes == (
        f"{GOLD}: the whole table was computed: rate is float, by whose values no run can choose rows",
    )
    assert lakehouse.run(GOLD, job=Job.TABLE_VERIFY, sample=1).details["groups"] == 1


@pytest.mark.slow
def test_a_late_event_of_a_history_computes_the_days_of_the_rows_that_it_changes_and_no_others(
    lakehouse: Lakehouse,
) -> None:
    at_the_end_of = "h.__START_AT < date_add(d.day, 1) and (h.__END_AT is null or h.__END_AT >= date_add(d.day, 1))"
    lakehouse.specs(
        bronze_document(),
        silver_document(
            HISTORY,
            stored_as_scd_type=2,
            sequence_by=["event_at"],
            except_column_list=["event_at", "event_seq", "day"],
        ),
        gold_document("gold.days", measures={"orders": "count(*)"}),
        gold_document(
            sources={
                "d": {"table": "gold.days"},
                "h": {"table": HISTORY, "join": "inner", "on": at_the_end_of, "lookup": True},
            },
            refresh_from={"d": "day"},
            group_by={"day": "d.day"},
            measures={"orders": "count(*)", "amount": "sum(h.amount)"},
        ),
    )
    each_day = [order(number, 1, of_day=number) for number in range(1, 7)]
    first, late, last = (order(9, amount, of_day=at) for amount, at in ((100, 2), (200, 3), (300, 5)))
    given(lakehouse, SILVER, each_day, 1)
    given(lakehouse, BRONZE, [*each_day, first, last], 1)
    assert [report.message for report in lakehouse.run_all(1, HISTORY, "gold.days", GOLD) if report.exit_code] == []
    given(lakehouse, BRONZE, [late], 2)
    assert lakehouse.run_all(2, HISTORY, GOLD)[-1].notes == ()
    rows = {day.day: row for day, *row in lakehouse.rows(GOLD, "day", "orders", "amount", "_batch_seq")}
    assert rows == {
        1: [1, 1, 1],
        2: [3, 102, 2],
        3: [4, 203, 2],
        4: [5, 204, 2],
        5: [6, 305, 1],
        6: [7, 306, 1],
    }, "the order counted 100 from day 2, 200 from day 3, 300 from day 5"

"""Lookbacks on real Delta: a change computes the values that depend on it, and no others."""

from __future__ import annotations

from tests.support.documents.specs import gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.revenue_daily"


def test_a_change_computes_the_days_of_its_window_and_no_others(lakehouse: Lakehouse) -> None:
    window = "sum(sum(o.amount)) over (order by o.day range between interval 2 days preceding and current row)"
    lakehouse.specs(gold_document(measures={"recent": window}, lookback="2 days"))
    given(lakehouse, SILVER, [order(number, number, of_day=number) for number in range(1, 7)], 1)
    lakehouse.run(GOLD, 1)
    given(lakehouse, SILVER, [order(2, 20, hour=1, of_day=2)], 2)
    report = lakehouse.run(GOLD, 2)
    assert report.notes == ()
    rows = {day.day: (recent, batch) for day, recent, batch in lakehouse.rows(GOLD, "day", "recent", "_batch_seq")}
    assert rows == {1: (1, 1), 2: (21, 2), 3: (24, 2), 4: (27, 2), 5: (12, 1), 6: (15, 1)}


def test_a_running_total_is_computed_from_the_first_change_on(lakehouse: Lakehouse) -> None:
    total = {"total": "sum(sum(o.amount)) over (order by o.order_id)"}
    of_orders = {"refresh_from": {"o": "order_id"}, "group_by": {"day": "o.order_id"}, "refresh_by": "day"}
    lakehouse.specs(gold_document(measures=total, lookback="unbounded", **of_orders))
    given(lakehouse, SILVER, [order(name, 1) for name in ("'a\\", "b'", "c")], 1)
    lakehouse.run(GOLD, 1)
    given(lakehouse, SILVER, [order("b'", 5, hour=1)], 2)
    assert lakehouse.run(GOLD, 2).notes == ()
    assert lakehouse.rows(GOLD, "day", "total", "_batch_seq") == [("o'a\\", 1, 1), ("ob'", 6, 2), ("oc", 7, 2)]


def test_a_late_event_of_a_history_computes_the_days_of_the_rows_that_it_changes_and_no_others(
    lakehouse: Lakehouse,
) -> None:
    history = {
        "stored_as_scd_type": 2,
        "sequence_by": ["event_at"],
        "except_column_list": ["event_at", "event_seq", "day"],
    }
    at_the_end_of = "h.__START_AT < date_add(d.day, 1) and (h.__END_AT is null or h.__END_AT >= date_add(d.day, 1))"
    sources = {
        "d": {"table": "gold.days"},
        "h": {"table": "silver.history", "join": "inner", "on": at_the_end_of, "lookup": True},
    }
    lakehouse.specs(
        silver_document("silver.history", **history),
        gold_document("gold.days", measures={"orders": "count(*)"}),
        gold_document(
            sources=sources,
            refresh_from={"d": "day"},
            group_by={"day": "d.day"},
            measures={"orders": "count(*)", "amount": "sum(h.amount)"},
        ),
    )
    tables = BRONZE, SILVER, "silver.history", "gold.days", GOLD
    each_day = [order(number, 1, of_day=number) for number in range(1, 7)]
    first, last, late = order(9, 100, of_day=2), order(9, 300, of_day=5), order(9, 200, of_day=3)
    lakehouse.deliver(1, "a.json", [*each_day, first, {**last, "day": first["day"]}])
    assert [report.message for report in lakehouse.run_all(1, *tables) if report.exit_code] == []
    lakehouse.deliver(2, "b.json", [{**late, "day": first["day"]}])
    assert lakehouse.run_all(2, *tables)[-1].notes == ()
    rows = {day.day: row for day, *row in lakehouse.rows(GOLD, "day", "orders", "amount", "_batch_seq")}
    assert rows == {
        1: [1, 1, 1],
        2: [3, 102, 2],
        3: [4, 203, 2],
        4: [5, 204, 2],
        5: [6, 305, 1],
        6: [7, 306, 1],
    }, "the order counted 100 from day 2, 200 from day 3, 300 from day 5"

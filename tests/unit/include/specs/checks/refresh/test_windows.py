"""A window or a join that looks at other groups needs a lookback, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.documents.checked_gold import joined, outcome, single
from tests.support.documents.specs import gold_document, query_document, write_specs


def test_a_window_over_several_values_is_refused(tmp_path: Path) -> None:
    over = "sum(sum(o.amount)) over (partition by {} order by o.day)"
    for partition in ("day", "o.day"):
        assert outcome(tmp_path, gold_document(measures={"m": over.format(partition)}))[0] == []
    shares = ["n / sum(count(*)) over ()", "sum(count(*)) over w", "max(_batch_seq) / sum(count(*)) over ()"]
    for window in (over.format("o.order_id"), "rank() over (order by count(*))", *shares):
        problems, _ = outcome(tmp_path, gold_document(measures={"n": "count(*)", "m": window}))
        assert "measures.m: this window looks at groups that are not computed again together" in problems[0]


def test_a_window_over_the_rows_of_a_query_is_refused_whether_or_not_its_columns_have_an_alias(tmp_path: Path) -> None:
    write_specs(tmp_path, query_document("gold.days", query="SELECT day, amount FROM o"))
    changes = {"sources": {"d": {"table": "gold.days"}}, "refresh_from": {"d": "day"}}
    for day in ("day", "d.day"):
        groups = {"group_by": {"day": day}, "measures": {"m": "sum(sum(amount)) over (order by day)"}}
        (problem,), _ = outcome(tmp_path, gold_document(**changes, **groups))
        assert "write `lookback: unbounded`" in problem
        assert outcome(tmp_path, gold_document(**changes, **groups, lookback="unbounded")) == ([], ())


ROLLING = "sum(count(*)) over (order by o.day range between interval 6 days preceding and current row)"


def test_a_window_of_time_needs_its_lookback(tmp_path: Path) -> None:
    for lookback in ("6 days", "2 weeks", "unbounded"):
        assert outcome(tmp_path, gold_document(measures={"m": ROLLING}, lookback=lookback)) == ([], ())
    for changes in ({}, {"lookback": "5 days"}):
        (problem,), _ = outcome(tmp_path, gold_document(measures={"m": ROLLING}, **changes))
        assert "add `partition by o.day` to it, or write `lookback: 6 days`" in problem
    (problem,), _ = outcome(tmp_path, gold_document(measures={"m": "lag(count(*)) over (order by o.day)"}))
    assert "write `lookback: unbounded`" in problem


@pytest.mark.parametrize(
    "measure",
    [
        "lead(count(*)) over (order by o.day)",
        "sum(count(*)) over (order by o.amount)",
        "sum(count(*)) over (order by o.day range between current row and interval 1 day following)",
    ],
)
def test_no_lookback_lets_a_window_see_later_groups(tmp_path: Path, measure: str) -> None:
    document = gold_document(measures={"m": measure}, group_by={"day": "o.day", "amount": "o.amount"})
    (problem,), _ = outcome(tmp_path, {**document, "lookback": "unbounded"})
    assert "this window looks at groups that are not computed again together: the window" in problem


def test_a_join_of_earlier_rows_is_proved_if_it_says_how_far_back_they_are(tmp_path: Path) -> None:
    document = joined("p.day between date_sub(o.day, 6) and o.day", "day")
    assert len(outcome(tmp_path, document)[1]) == 1, "without a lookback nothing is proved"
    assert outcome(tmp_path, {**document, "lookback": "6 days"}) == ([], ())
    (problem,), _ = outcome(tmp_path, {**document, "lookback": "5 days"})
    assert "sources.p.on joins rows that are further back than `lookback: 5 days`" in problem
    assert "write `lookback: 6 days`" in problem
    (problem,), _ = outcome(tmp_path, {**document, "lookback": "6 days", "measures": {"m": ROLLING}})
    assert "write `lookback: 12 days`" in problem, "what is joined to a group of the window reaches further back"
    for on in ("p.day <= o.day", "p.day between date_sub(o.day, 6) and date_add(o.day, 1)"):
        assert len(outcome(tmp_path, {**joined(on, "day"), "lookback": "6 days"})[1]) == 1


def test_only_what_has_an_order_has_a_lookback(tmp_path: Path) -> None:
    of_ids = single("order_id", "o.order_id", lookback="7 days")
    (problem,), _ = outcome(tmp_path, of_ids)
    assert "lookback: day is string, which does not go back in time" in problem
    assert outcome(tmp_path, {**of_ids, "lookback": "unbounded"}) == ([], ())

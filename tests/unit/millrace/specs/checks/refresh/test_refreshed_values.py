"""A refresh that leaves stale groups is refused, by its values, joins or windows; what only data shows is a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.catalog import load_catalog
from millrace.specs.checks.sql import sql_problems
from tests.support.cli import Lakehouse
from tests.support.documents.refusals import joined, outcome, single
from tests.support.documents.specs import (
    SHIPPED,
    bronze_document,
    gold_document,
    query_document,
    silver_document,
    write_specs,
)


@pytest.mark.parametrize(
    ("refresh", "group"),
    [("day", "o.day"), ("DAY", "o.`Day`"), ("(day)", "day"), ("upper(order_id)", "UPPER(o.order_id)")],
)
def test_a_source_that_gives_the_value_of_the_group_is_sound(tmp_path: Path, refresh: str, group: str) -> None:
    assert outcome(tmp_path, single(refresh, group)) == ([], ())
    traced = {**single(refresh, group), "refresh_from": {}}
    assert outcome(tmp_path, traced) == ([], ()), "nobody needs to state it"


@pytest.mark.parametrize(
    ("refresh", "group", "traced"),
    [
        ("date_trunc('month', event_at)", "to_date(o.event_at)", "TO_DATE(event_at)"),
        ("date_add(day, 1)", "o.day", "day"),
        ("'x'", "o.order_id", "order_id"),
        ("to_date(event_at)", "o.event_at::date", "CAST(event_at AS DATE)"),
        ("day", "coalesce(o.day, date '2013-01-01')", "COALESCE(day, CAST('2013-01-01' AS DATE))"),
    ],
)
def test_another_value_than_the_group_is_not_used(tmp_path: Path, refresh: str, group: str, traced: str) -> None:
    problems, notes = outcome(tmp_path, single(refresh, group))
    assert problems == []
    assert notes == (f"gold.revenue_daily: refresh_from.o is not used: day is traced to {traced} of it",)


@pytest.mark.parametrize("measure", ["max(current_timestamp())", "count_if(o.day < current_date)", "sum(rand())"])
def test_a_value_of_the_moment_is_refused(tmp_path: Path, measure: str) -> None:
    problems, _ = outcome(tmp_path, gold_document(measures={"m": measure}))
    assert "so that each run would give other rows: " in problems[0]


def test_check_prints_the_notes(lakehouse: Lakehouse) -> None:
    answer = lakehouse("check", "--tables", str(SHIPPED), "--json")
    assert answer.exit_code == 0
    assert "note: gold.delay_by_weather: the spec does not prove that refresh_from.w always" in answer.stderr
    assert "route_performance_daily" not in answer.stderr


def test_a_group_whose_values_have_no_text_of_their_own_chooses_no_rows(tmp_path: Path) -> None:
    kinds = {"raw": "binary", "tags": "array<string>", "place": "struct<city:string>"}
    silver = silver_document()
    columns = {**silver["columns"], **{name: {"type": kind} for name, kind in kinds.items()}}
    for name, function in (("raw", "hex"), ("tags", "to_json"), ("place", "to_json")):
        write_specs(tmp_path, bronze_document(columns=columns), silver_document(columns=columns))
        texts = []
        for group in (f"o.{name}", f"{function}(o.{name})"):
            document = single(group.replace("o.", ""), group)
            catalog = load_catalog(write_specs(tmp_path, document))
            texts.append([str(problem) for problem in sql_problems(catalog)])
        (problem,), of_text = texts
        assert f"refresh_by: day is {kinds[name]}, by whose values no run can choose rows" in problem
        assert f"write {function}(o.{name})" in problem
        assert of_text == []


@pytest.mark.parametrize(
    ("on", "refresh"),
    [
        ("p.day = o.day", "day"),
        ("p.code = o.order_id and o.day <=> p.day", "day"),
        ("(p.code = o.order_id) and (p.amount > 1 or 1 = 2) and to_date(p.event_at) = o.day", "to_date(event_at)"),
    ],
)
def test_a_join_that_carries_the_value_is_sound(tmp_path: Path, on: str, refresh: str) -> None:
    assert outcome(tmp_path, joined(on, refresh)) == ([], ())


def test_a_value_is_carried_over_several_joins(tmp_path: Path) -> None:
    document = joined("p.day = o.day", "day")
    third = {"table": "silver.prices", "join": "left", "on": "q.day = p.day and q.code = o.order_id"}
    document = {**document, "sources": {**document["sources"], "q": third}}
    document["refresh_from"] = {**document["refresh_from"], "q": "day"}
    assert outcome(tmp_path, document) == ([], ())


@pytest.mark.parametrize(
    ("on", "refresh"),
    [("p.order_id = o.order_id", "day"), ("p.code = o.order_id", "to_date(event_at)"), ("p.amount > o.amount", "day")],
)
def test_a_join_across_values_is_refused(tmp_path: Path, on: str, refresh: str) -> None:
    problems, _ = outcome(tmp_path, joined(on, refresh))
    assert "refresh_from.p: sources.p.on joins rows with other values of day: it does not compare this" in problems[0]
    assert "= o.day` to sources.p.on; or, if" in problems[0]
    assert "write sources.p.lookup: true in place of refresh_from.p" in problems[0]


def test_groups_that_nothing_traces_need_a_refresh_from(tmp_path: Path) -> None:
    stated = joined("p.day = o.day", "day", group="coalesce(p.day, o.day)")
    assert outcome(tmp_path, stated)[0] == []
    (problem,), _ = outcome(tmp_path, {**stated, "refresh_from": {}})
    assert "refresh_by: the groups cannot be refreshed by this column: " in problem
    assert "state in refresh_from, for each source, the value that a changed row affects" in problem


def test_a_join_on_the_value_gives_it_whatever_refresh_from_says(tmp_path: Path) -> None:
    for refresh in ("date_trunc('month', day)", "date_add(day, 1)"):
        problems, notes = outcome(tmp_path, joined("p.day = o.day", refresh))
        assert problems == []
        assert notes == ("gold.revenue_daily: refresh_from.p is not used: day is traced to day of it",)


@pytest.mark.parametrize(
    ("on", "refresh", "group"),
    [
        ("p.day = o.event_at", "day", "o.day"),
        ("p.day = o.day or p.code = 'x'", "day", "o.day"),
        ("p.day between o.day and o.event_at", "day", "o.day"),
        ("p.day = o.day", "day", "p.day"),  # null for an order without a price
    ],
)
def test_a_join_that_may_carry_the_value_is_a_note(tmp_path: Path, on: str, refresh: str, group: str) -> None:
    first = group.replace("o.", "").replace("p.", "")
    problems, notes = outcome(tmp_path, joined(on, refresh, first=first, group=group))
    assert problems == []
    assert len(notes) == 1


def test_a_group_by_the_value_of_a_joined_source_is_sound_only_for_an_inner_join(tmp_path: Path) -> None:
    assert outcome(tmp_path, joined("p.day = o.day", "day", group="p.day", join="inner")) == ([], ())


def test_a_group_by_a_lookup_is_found_without_the_alias_of_its_column(tmp_path: Path) -> None:
    lookup = {"table": "silver.prices", "join": "left", "on": "p.order_id = o.order_id", "lookup": True}
    document = gold_document(
        sources={"o": {"table": "silver.orders"}, "p": lookup}, refresh_from={"o": "order_id"}, group_by={"day": "code"}
    )
    (problem,), _ = outcome(tmp_path, document)
    assert "group_by.day: a row of the lookup 'p' may belong to many values of refresh_by" in problem
    assert "compute day from o" in problem


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
    assert "rows that are further back than `lookback: 5 days` are joined" in problem
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

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
    [
        ("day", "o.day"),
        ("DAY", "o.`Day`"),
        ("(day)", "day"),
        ("upper(order_id)", "UPPER(o.order_id)"),
        ("to_date(event_at)", "o.event_at::date"),
        ("date(event_at)", "cast((o.event_at) as date)"),
        ("date_trunc('DD', event_at)", "to_date(o.event_at)"),
        ("trunc(event_at, 'MM')", "date_trunc('month', o.event_at)"),
        ("date_trunc('month', to_date(event_at))", "date_trunc('MON', o.event_at)"),
        ("to_date(day)", "o.day"),
        ("year(to_date(event_at))", "year(o.event_at)"),
        ("to_date(date_trunc('week', day))", "date_trunc('week', o.day)"),
        ("to_date(from_utc_timestamp(event_at, 'EST'))", "to_date(from_utc_timestamp(o.event_at, 'EST'))"),
    ],
)
def test_a_source_that_gives_the_value_of_the_group_is_sound(tmp_path: Path, refresh: str, group: str) -> None:
    assert outcome(tmp_path, single(refresh, group)) == ([], ())


@pytest.mark.parametrize(
    ("refresh", "group"),
    [
        ("date_trunc('month', event_at)", "to_date(o.event_at)"),
        ("to_date(event_at)", "date_trunc('month', o.event_at)"),
        ("event_at", "to_date(o.event_at)"),
        ("trunc(day, 'YEAR')", "o.day"),
        ("date_trunc('week', event_at)", "date_trunc('month', o.event_at)"),
        ("date_trunc('month', date_trunc('week', event_at))", "date_trunc('month', o.event_at)"),
        ("date_add(day, 1)", "o.day"),
        ("day", "date_sub(o.day, 1)"),
        ("day + interval 1 day", "o.day"),
        ("last_day(day)", "trunc(o.day, 'MM')"),
        ("amount + 1", "o.amount"),
        ("amount - (amount - 1)", "o.amount - o.amount - 1"),
        ("'x'", "o.day"),
        ("'x'", "o.order_id"),
        ("'2024-05-15'", "o.day"),
        ("to_date(event_at)", "to_date(from_utc_timestamp(o.event_at, 'America/New_York'))"),
        ("to_date(to_utc_timestamp(event_at, 'Asia/Tokyo'))", "to_date(o.event_at)"),
        ("to_date(event_at + interval 1 hour)", "to_date(o.event_at)"),
        ("to_date(timestampadd(MINUTE, -1, event_at))", "to_date(o.event_at)"),
    ],
)
def test_another_value_than_the_group_is_refused(tmp_path: Path, refresh: str, group: str) -> None:
    problems, notes = outcome(tmp_path, single(refresh, group))
    if refresh == "to_date(event_at + interval 1 hour)":
        assert ": for event_at = 2024-05-15 23:59:59 these are 2024-05-15 and" in problems[0]
    assert f"refresh_from.o: refresh_by: day gives {group}, but refresh_from.o gives {refresh}: for " in problems[0]
    assert "give the value of day: else a change leaves its own group stale" in problems[0]
    assert notes == ()


@pytest.mark.parametrize(
    ("refresh", "group"),
    [
        ("event_at", "o.day"),
        ("lower(order_id)", "upper(o.order_id)"),
        ("trunc(day, 'DD')", "o.day"),
        ("to_date(event_at) + interval '1 2' day to hour", "to_date(o.event_at)"),
        ("to_date(from_utc_timestamp(event_at, 'EST'))", "to_date(o.event_at)"),
        ("to_date(order_id, 'yyyyMM')", "to_date(o.order_id)"),
        ("day", "coalesce(o.day, date '2013-01-01')"),
    ],
)
def test_what_depends_on_the_data_is_a_note(tmp_path: Path, refresh: str, group: str) -> None:
    problems, (note,) = outcome(tmp_path, single(refresh, group))
    assert problems == []
    assert "does not prove that refresh_from.o always gives day; `lakehouse verify gold.revenue_daily`" in note


@pytest.mark.parametrize(
    ("where", "problems", "notes"),
    [
        ("order_id = 'x'", 0, 0),
        ("order_id in ('x', 'y')", 0, 1),
        ("order_id like 'x'", 0, 1),
        ("order_id > 'A'", 1, 0),
        ("day >= '2013-01-01'", 1, 0),
    ],
)
def test_only_values_that_where_selects_show_a_fault(tmp_path: Path, where: str, problems: int, notes: int) -> None:
    document = single("'x'", "o.order_id", sources={"o": {"table": "silver.orders", "where": where}})
    assert [len(texts) for texts in outcome(tmp_path, document)] == [problems, notes]


def test_a_refresh_by_an_earlier_value_is_no_fault_within_the_lookback(tmp_path: Path) -> None:
    for refresh, problems in (("date_sub(day, 6)", 0), ("date_sub(day, 8)", 1), ("date_add(day, 1)", 1)):
        assert len(outcome(tmp_path, single(refresh, "o.day", lookback="7 days"))[0]) == problems


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


def test_a_join_on_the_value_with_another_value_in_refresh_from_is_refused(tmp_path: Path) -> None:
    for refresh in ("date_trunc('month', day)", "date_add(day, 1)"):
        problems, _ = outcome(tmp_path, joined("p.day = o.day", refresh))
        assert f"day gives o.day, but refresh_from.p gives {refresh}: for day = 2024-05-15" in problems[0]


@pytest.mark.parametrize(
    ("on", "refresh", "group"),
    [
        ("p.day = o.event_at", "day", "o.day"),
        ("p.day = o.day or p.code = 'x'", "day", "o.day"),
        ("p.day between o.day and o.event_at", "day", "o.day"),
        ("p.code = o.amount and p.day = o.day", "code", "o.amount"),  # '01' = 1
        ("p.code = 1 and p.day = o.day", "code", "1"),
        ("p.code = substr(o.order_id, 1, 2)", "code", "substr(o.order_id, 1, 2)"),
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

"""A refresh by which a run would leave stale groups is refused; what only the data can show is a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.catalog import load_catalog
from include.specs.checks.sql import sql_problems
from tests.support.cli import Lakehouse
from tests.support.documents.checked_gold import outcome, single
from tests.support.documents.specs import SHIPPED, bronze_document, gold_document, silver_document, write_specs


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
        (
            "to_date(from_utc_timestamp(event_at, 'America/New_York'))",
            "to_date(from_utc_timestamp(o.event_at, 'America/New_York'))",
        ),
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
def test_only_values_that_where_selects_show_that_a_refresh_is_wrong(
    tmp_path: Path, where: str, problems: int, notes: int
) -> None:
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

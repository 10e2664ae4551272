"""Gold specs whose parts do not agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents.measures import READING_A_RESULT
from tests.support.documents.refusals import assert_problem, only_problem, problem_of_gold, sql_problems_of
from tests.support.documents.specs import Document, bronze_document, gold_document, silver_document, write_specs

ORDERS = {"table": "silver.orders"}
CUSTOMERS: dict[str, Any] = {**ORDERS, "join": "left", "on": "o.order_id = c.order_id"}


def joined_sources(**joined: Any) -> dict[str, Any]:
    """`o`, and `c` joined to it."""
    return {"o": ORDERS, "c": {**CUSTOMERS, **joined}}


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"refresh_by": "dya"}, "refresh_by", "no column of group_by", "did you mean 'day'?"),
        ({"refresh_from": {"o": "day", "x": "day"}}, "refresh_from.x", "no source has this alias", "known are o"),
        ({"group_by": {"day": "q.day"}}, "group_by.day", "no source has the alias 'q'", "known are o"),
        ({"measures": {"n": "sum(o.amuont)"}}, "measures.n", "orders has no such column", "did you mean 'o.amount'?"),
        ({"measures": {"day": "count(*)"}}, "measures.day", "a column of group_by has this name", "rename"),
        ({"classifications": {"ordres": "internal"}}, "classifications.ordres", "no such column", "did you mean"),
        ({"subject_keys": {"ordres": "seller"}}, "subject_keys.ordres", "no such column", "did you mean"),
        ({"refresh_from": {"o": "o.day"}}, "refresh_from.o", "the source's own columns", "write 'day'"),
        ({"sources": {"o": {"table": "silver.ordres"}}}, "sources.o.table", "no spec", "did you mean 'silver.o"),
        ({"sources": {"o": {"table": "bronze.orders"}}}, "sources.o.table", "gold reads silver and gold tables", ""),
        ({"sources": {"o": {**ORDERS, "where": "o.amount > 0"}}}, "sources.o.where", "own columns", "write"),
    ],
)
def test_each_is_named_with_its_likely_fix(tmp_path: Path, changes: Document, key: str, message: str, fix: str) -> None:
    assert_problem(problem_of_gold(tmp_path, **changes), key, message, fix)


def test_a_field_of_a_struct_needs_no_alias(tmp_path: Path) -> None:
    address = {"address": {"type": "struct<city: string>"}}
    tables = [{**each, "columns": {**each["columns"], **address}} for each in (bronze_document(), silver_document())]
    groups = {"group_by": {"day": "o.day", "city": "address.city"}, "measures": {"n": "count(address.city)"}}
    assert sql_problems_of(tmp_path, *tables, gold_document(**groups)) == []
    misspelt = gold_document(**{**groups, "measures": {"n": "count(adress.city)"}})
    problem = only_problem(write_specs(tmp_path, misspelt))
    assert "no source has the alias 'adress'" in problem.message


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"refresh_from": {"o": "day", "c": "day"}}, "refresh_from.c", "it is a lookup", "leave it out"),
        ({"group_by": {"day": "coalesce(o.day, c.day)"}}, "group_by.day", "the lookup 'c' may belong", "compute day"),
        ({"first": {"lookup": True}}, "sources.o.lookup", "the first source is no lookup", "put the source"),
        ({"joined": {"on": "o.order_id = d.order_id"}}, "sources.c.on", "'d' is joined after 'c'", "move d before c"),
    ],
)
def test_a_lookup_that_could_not_be_traced(tmp_path: Path, changes: Document, key: str, message: str, fix: str) -> None:
    sources = joined_sources(lookup=True, **changes.pop("joined", {}))
    sources["o"] = {**ORDERS, **changes.pop("first", {})}
    sources["d"] = {**CUSTOMERS, "on": "d.day = o.day", "lookup": True}
    problem = problem_of_gold(tmp_path, **{"sources": sources, "refresh_from": {"o": "day"}, **changes})
    assert (problem.key, problem.fix.startswith(fix)) == (key, True)
    assert message in problem.message


BOTH = {"o": "day", "c": "day"}


@pytest.mark.parametrize(
    ("sources", "changes", "key", "message"),
    [
        ({"o": ORDERS, "c": ORDERS}, {"refresh_from": BOTH}, "sources.c", "every source but the first needs a join"),
        ({"o": ORDERS, "c": {**ORDERS, "join": "left"}}, {"refresh_from": BOTH}, "sources.c", "join and on go"),
        ({"o": {**CUSTOMERS, "on": "o.order_id = o.order_id"}}, {}, "sources.o", "the first source joins nothing"),
        (joined_sources(on="o.order_id = c.order"), {"refresh_from": BOTH}, "sources.c.on", "did you mean 'c.order_"),
        (joined_sources(), {"refresh_from": {"o": "day"}}, "refresh_from", "a change in it would not reach this table"),
    ],
)
def test_a_join_that_is_not_whole_or_whose_changes_would_be_overlooked(
    tmp_path: Path, sources: dict[str, Any], changes: Document, key: str, message: str
) -> None:
    problem = problem_of_gold(tmp_path, sources=sources, **changes)
    assert problem.key.startswith(key)
    assert message in f"{problem.message}; {problem.fix}"


def test_measures_that_spark_understands_are_not_refused(tmp_path: Path) -> None:
    measures = [
        "count(*)", "1", "sum(o.amount) filter (where o.amount > 1)", "max(o.day) = o.day", "upper(string(o.day))",
        "day", "orders + 1", "percentile_cont(0.5) within group (order by o.amount)", "count(distinct o.amount)",
        "any(o.amount > 1)", "max_by(o.order_id, struct(o.amount, o.order_id))", "mode(o.amount, true)",
        "mode() within group (order by o.amount)", "min_by(o.amount, named_struct('a', o.day, 'b', o.order_id))",
        "max_by(o.amount, o.amount)", "percentile_approx(o.amount, 0.5)",
        "sum(sum(o.amount)) over (partition by o.day)",
        "spark_catalog.default.own(o.amount)", "listagg(o.order_id, ',') within group (order by o.order_id)",
        "sum(case when o.order_id like any ('a') then 1 end)", "array_sort(collect_list(o.order_id))",
        "sort_array(collect_set(struct(o.order_id, o.day)) filter (where o.amount > 1))", "size(collect_set(o.day))",
        "count_if(o.order_id = 'x.y' or o.order_id = \"it''s z.w\") / 2.5 + 1.e3",
        "count_if(o.order_id = r'\\') -- as x.y", "sum(o.amount) /* not x.y */", "count_if(o.order_id = r\"\\' x.y\")",
    ]  # fmt: skip
    named = {f"m{number}": measure for number, measure in enumerate(measures)}
    gold = gold_document(measures={"orders": "count(*)", **named})
    assert sql_problems_of(tmp_path, bronze_document(), silver_document(), gold) == []


@pytest.mark.parametrize("measure", READING_A_RESULT)
def test_a_measure_within_an_aggregate_or_a_window_is_found(tmp_path: Path, measure: str) -> None:
    gold = gold_document(measures={"orders": "count(*)", "m": measure})
    found = sql_problems_of(tmp_path, bronze_document(), silver_document(), gold)
    (of_result,) = [each for each in found if "which is a column of the result" in each.message]
    assert (of_result.key, of_result.fix) == ("measures.m", "write what it stands for: count(*)")


def test_a_group_within_an_aggregate_is_found_unless_its_name_is_a_column_of_a_source(tmp_path: Path) -> None:
    groups = {"day": "o.day", "hour": "hour(o.event_at)"}
    gold = gold_document(group_by=groups, measures={"first": "min(day)", "last": "max(HOUR)"})
    (found,) = sql_problems_of(tmp_path, bronze_document(), silver_document(), gold)
    assert (found.key, found.fix) == ("measures.last", "write what it stands for: hour(o.event_at)")


ANY_VALUE = "write min, max or max_by, or order the rows in a window"


@pytest.mark.parametrize(
    ("measure", "fix"),
    [
        ("first(o.order_id)", ANY_VALUE),
        ("count(*) + first_value(o.amount)", ANY_VALUE),
        ("listagg(o.order_id, ',')", "write WITHIN GROUP (ORDER BY ...)"),
        ("array_agg(o.order_id)", "wrap it in sort_array()"),
        ("mode(o.amount)", "write mode(o.amount, true), which always takes the same one"),
        ("min_by(o.amount, struct(o.day))", "order by struct("),
        ("max_by(o.amount, o.day)", "order by struct(o.day, o.amount), or by struct(o.day, <a column that is diff"),
        ("explode(collect_set(o.amount))", "write a `query`, such as SELECT ... FROM o LATERAL VIEW explode(o.items)"),
    ],
)
def test_a_measure_with_other_values_in_each_run_is_refused_with_a_fix(tmp_path: Path, measure: str, fix: str) -> None:
    found = sql_problems_of(tmp_path, bronze_document(), silver_document(), gold_document(measures={"m": measure}))
    assert {each.key for each in found} == {"measures.m"}
    assert any(each.fix.startswith(fix) for each in found), found


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        ({"group_by": {"day": "o.day", "n": "explode(array(1, 2))"}}, "group_by.n", "makes rows"),
        ({"group_by": {"day": "o.day", "n": "window(o.event_at, '2 hours', '1 hour')"}}, "group_by.n", "makes rows"),
        ({"group_by": {"day": "o.day", "n": "rank() over (order by o.day)"}}, "group_by.n", "a window is not allowed"),
        ({"sources": {"o": {**ORDERS, "where": "1 = rank() over (order by day)"}}}, "sources.o.where", "a window is"),
        ({"sources": {"o": {**ORDERS, "where": "stack(2, 1, 2) = 1"}}}, "sources.o.where", "makes rows"),
        ({"refresh_from": {"o": "explode(sequence(day, day))"}}, "refresh_from.o", "makes rows"),
    ],
)
def test_what_groups_rows_is_one_value_of_each_row(tmp_path: Path, change: Document, key: str, said: str) -> None:
    found = sql_problems_of(tmp_path, bronze_document(), silver_document(), gold_document(**change))
    assert [(each.key, said in each.message) for each in found] == [(key, True)], found


def test_sql_that_is_too_long_to_be_checked_is_a_problem_of_its_file(tmp_path: Path) -> None:
    measures = {"total": " + ".join(["sum(o.amount)"] * 1_500)}
    (found,) = sql_problems_of(tmp_path, bronze_document(), silver_document(), gold_document(measures=measures))
    assert "its SQL is too long or nested too deeply to be checked" in found.message
    assert found.file == tmp_path / "gold/shop/revenue_daily.yaml"

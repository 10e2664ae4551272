"""Errors in the SQL of specs are found without Spark; SQL that Spark may understand is not refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.catalog import load_catalog
from millrace.specs.checks.sql import sql_problems
from tests.support.cli import Lakehouse
from tests.support.documents.refusals import rule, sql_problems_of
from tests.support.documents.specs import (
    Document,
    bronze_document,
    gold_document,
    query_document,
    silver_document,
    write_specs,
)

RECONCILE = "expect_table_to_reconcile_with_source"

VALID = [
    "amount", "AMOUNT + Event_Seq", "_rescued", "_source_file", "coalesce(amount, 0)", "cast(amount as decimal(10,2))",
    "try_cast(amount as varchar(3))", "amount::int", "date_add(day, 1)", "dateadd(DAY, 1, day)",
    "timestampadd(HOUR, 1, event_at)", "timestampdiff(MINUTE, event_at, day)",
    "extract(year from event_at)", "trim(both 'x' from order_id)", "substring(order_id from 1 for 2)",
    "position('a' in order_id)", "overlay(order_id placing 'x' from 1)", "order_id rlike '^a\\\\d'",
    "order_id like any ('a%', 'b%')", "order_id like all ('a%')", "amount in (1, 2)", "!(amount > 1)",
    "amount <=> null", "amount is distinct from 1", "amount between (1) and (2)",
    "case when amount > 1 then 'a' else 'b' end", "event_at + interval 3 days", "date '2013-01-01'",
    "order_id = 'now'", "date 'epoch'", "transform(array(amount), x -> x + 1)[0]",
    "aggregate(array(1, 2), 0, (acc, x) -> acc + x)", "filter(array(amount), (x, i) -> i > 0)",
    "exists(array(amount), x -> x > 1)", "map('a', amount)['a']", "from_json(_rescued, 'a int').a",
    "get_json_object(_rescued, '$.a')", "named_struct('a', amount).a", "struct(amount as a).a",
    "to_timestamp(order_id, \"yyyy-MM-dd'T'HH\")", "concat('(', order_id)", "r'a\\d'", "x'1F'", "1L + 1.5BD",
    "`amount`", "left(order_id, 1) || right(order_id, 1)", "if(amount > 1, 1, 2)",
    "hash(amount)", "parse_json('{}')", "collate(order_id, 'UTF8_LCASE')", "order_id collate unicode",
    "variant_get(parse_json('{}'), '$.a', 'int')", "nullifzero(amount)", "amount div 2", "-amount % 3",
    "convert_timezone('UTC', 'America/New_York', event_at)", "array(1, 2, 3)[1]", "string(amount)",
]  # fmt: skip


def silver(expression: str) -> tuple[Document, Document]:
    columns = {**silver_document()["columns"], "x": {"from": expression}, "later_column": {"from": "amount"}}
    return bronze_document(), silver_document(columns=columns)


def test_what_spark_understands_is_not_refused(tmp_path: Path) -> None:
    columns = {f"x{number}": {"from": sql} for number, sql in enumerate(VALID)}
    silver = silver_document(columns={**silver_document()["columns"], **columns})
    assert sql_problems_of(tmp_path, bronze_document(), silver) == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("to_dat(day)", "unknown function 'to_dat' (got 'to_dat(day)'); did you mean 'to_date'?"),
        ("upper(no_function_at_all(amount))", "unknown function 'no_function_at_all'"),
        ("amuont + 1", "there is no column 'amuont' here (got 'amuont + 1'); did you mean 'amount'?"),
        ("o.amount", "there is no column 'o.amount' here"),
        ("later_column", "there is no column 'later_column' here"),
        ("upper(x)", "there is no column 'x' here"),
        ("sum(amount)", "the aggregate 'sum' is not allowed here"),
        ("amount / max(amount)", "the aggregate 'max' is not allowed here"),
        ("abs(amount", "not an expression: parentheses are opened 1 times and closed 0 times"),
        ("abs(amount), amount", "not an expression: it is more than one"),
        ("'a", "not an expression: a quote is not closed"),
        ("  ", "not an expression: there is no expression here"),
    ],
)
def test_an_error_in_the_sql_of_a_column_is_found_with_its_place(tmp_path: Path, sql: str, said: str) -> None:
    (found,) = sql_problems_of(tmp_path, *silver(sql))
    assert said in str(found)
    assert (found.key, found.file) == ("columns.x.from", tmp_path / "silver/shop/orders.yaml")
    assert "from:" in found.file.read_text().splitlines()[found.line - 1]


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        ("uuid()", "string", "uuid is random"),
        ("'now'", "timestamp", "'now', as a time, reads the clock"),
        ("coalesce(day, 'today')", "string", "'today', as a time, reads the clock"),
        ("current_user", "string", "depends on who runs the query"),
    ],
)
def test_a_column_of_silver_has_the_same_value_in_each_run(tmp_path: Path, sql: str, kind: str, said: str) -> None:
    columns = {**silver_document()["columns"], "x": {"from": sql, "type": kind}}
    (found,) = sql_problems_of(tmp_path, bronze_document(), silver_document(columns=columns))
    assert (found.key, said in found.message) == ("columns.x.from", True), found
    (of_deletes,) = sql_problems_of(tmp_path, bronze_document(), silver_document(apply_as_deletes="day < 'today'"))
    assert of_deletes.key == "apply_as_deletes"


def test_the_value_of_a_message_is_the_same_if_it_is_read_again(tmp_path: Path) -> None:
    transforms = {"day": "'today'", "order_id": "uuid()", "amount": "cast(timestamp > 'now' as int)"}
    source = {"kafka": "main", "topics": ["a"], "format": "json", "transforms": transforms}
    found = sql_problems_of(tmp_path, bronze_document(source=source))
    assert [problem.key for problem in found] == [f"source.transforms.{name}" for name in transforms]


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        ({"measures": {"m": "o.amount"}}, "measures.m", "o.amount has a value in each row"),
        ({"measures": {"m": "sum(max(o.amount))"}}, "measures.m", "'max' is inside another aggregate"),
        ({"measures": {"m": "sum(amuont)"}}, "measures.m", "no column 'amuont'"),
        ({"measures": {"m": "sum(o.`amuont`)"}}, "measures.m", "no column 'o.amuont' here"),
        ({"measures": {"m": "m + count(*)"}}, "measures.m", "no column 'm' here"),
        ({"measures": {"n": "count(*)", "amount": "n", "m": "amount + 1"}}, "measures.m", "amount has a value in each"),
        ({"measures": {"m": "collect_list(o.amount)"}}, "measures.m", "is in another order in each run"),
        ({"measures": {"m": "slice(collect_set(o.amount), 1, 3)"}}, "measures.m", "wrap it in sort_array()"),
        ({"measures": {"m": "max(o.event_at) > TIMESTAMP'now'"}}, "measures.m", "'now', as a time, reads the clock"),
        ({"refresh_from": {"o": "coalesce(day, 'today')"}}, "refresh_from.o", "'today', as a time, reads the clock"),
        ({"measures": {"m": "max(current_user)"}}, "measures.m", "depends on who runs the query"),
        ({"measures": {"m": "max(o.event_at::timestamp_ntz)"}}, "measures.m", "'m' is a timestamp_ntz, which raises"),
        ({"measures": {"m": "max_by(parse_json(o.day), o.amount)"}}, "measures.m", "write to_json(<value>)"),
        ({"group_by": {"day": "struct(o.day, to_timestamp_ntz(o.day) AS at)"}}, "group_by.day", "a timestamp_ntz"),
        ({"group_by": {"day": "max(o.day)"}}, "group_by.day", "'max' is not allowed here"),
        ({"refresh_from": {"o": "dya"}}, "refresh_from.o", "no column 'dya'"),
        ({"sources": {"o": {"table": "silver.orders", "where": "count(*) > 1"}}}, "sources.o.where", "'count' is not"),
        ({"expectations": rule(RECONCILE, "fail", source="silver.orders", measure="sum(revenu)", source_measure="day")},
         f"expectations[0].{RECONCILE}.measure", "no column 'revenu'"),
    ],
)  # fmt: skip
def test_the_sql_of_gold_specs_is_checked(tmp_path: Path, change: Document, key: str, said: str) -> None:
    found = sql_problems_of(tmp_path, bronze_document(), silver_document(), gold_document(**change))
    assert key in {one.key for one in found}
    assert any(said in str(one) for one in found)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("row_number() over (partition by day order by amount)", "a window is not allowed here"),
        ("explode(split(order_id, ','))", "makes rows"),
    ],
)
def test_a_row_of_silver_is_made_of_one_row_of_its_source(tmp_path: Path, sql: str, said: str) -> None:
    found = sql_problems_of(tmp_path, *silver(sql))
    assert [(each.key, said in each.message) for each in found] == [("columns.x.from", True)], found
    (of_deletes,) = sql_problems_of(tmp_path, bronze_document(), silver_document(apply_as_deletes=f"{sql} is not null"))
    assert (of_deletes.key, said in of_deletes.message) == ("apply_as_deletes", True)


COUNTED = "(select count(*) from delta.`/lake/silver/customers`)"


def test_no_expression_reads_another_table(tmp_path: Path) -> None:
    join = {"table": "silver.orders", "join": "left", "on": f"p.day = o.day and p.amount > {COUNTED}"}
    gold = gold_document(
        sources={"o": {"table": "silver.orders", "where": f"amount >= {COUNTED}"}, "p": join},
        refresh_from={"o": f"date_add(day, {COUNTED})", "p": "day"},
        group_by={"day": "o.day", "n": COUNTED},
        measures={"m": f"sum(o.amount) / {COUNTED}"},
    )
    columns = {**silver_document()["columns"], "x": {"from": f"amount + {COUNTED}"}}
    conditions = {key: f"amount > {COUNTED}" for key in ("apply_as_deletes", "apply_as_truncates")}
    source = {"kafka": "main", "topics": ["a"], "format": "json", "transforms": {"amount": COUNTED}}
    bronze = bronze_document("bronze.messages", source=source)
    found = sql_problems_of(tmp_path, bronze_document(), bronze, silver_document(columns=columns, **conditions), gold)
    keys = [
        "source.transforms.amount", "columns.x.from", "apply_as_deletes", "apply_as_truncates", "sources.o.where",
        "sources.p.on", "refresh_from.o", "group_by.n", "measures.m",
    ]  # fmt: skip
    assert sorted(each.key for each in found if "a query within" in each.message) == sorted(keys)
    assert len(found) == len(keys)


def test_columns_of_a_source_that_evolves_are_not_checked(tmp_path: Path) -> None:
    columns = {**silver_document()["columns"], "x": {"from": "colour"}}
    assert sql_problems_of(tmp_path, bronze_document(on_drift="evolve"), silver_document(columns=columns)) == []


def test_transforms_of_messages_name_the_columns_of_messages(tmp_path: Path) -> None:
    source = {"kafka": "main", "topics": ["a"], "format": "json", "transforms": {"amount": "cast(kee as int)"}}
    (found,) = sql_problems_of(tmp_path, bronze_document(source=source))
    assert (found.key, "did you mean 'key'?" in str(found)) == ("source.transforms.amount", True)


def test_the_sql_of_a_spec_that_is_wrong_elsewhere_is_checked_too(tmp_path: Path) -> None:
    gold = gold_document(refresh_from={"o": "dya"}, group_by={"day": "o.dya"})
    catalog = load_catalog(write_specs(tmp_path, bronze_document(), silver_document(keyz=1), gold))
    assert "gold.revenue_daily" in catalog.invalid
    assert sql_problems(catalog) == []
    catalog = load_catalog(write_specs(tmp_path, silver_document(keys=["odrer_id"])))
    assert [problem.key for problem in sql_problems(catalog)] == ["refresh_from.o"]


def test_check_reports_errors_in_sql_with_all_other_errors(tmp_path: Path, lakehouse: Lakehouse) -> None:
    write_specs(tmp_path, *silver("to_dat(day)"), bronze_document("bronze.other", keyz=1))
    answer = lakehouse("check", "--tables", str(tmp_path))
    assert answer.exit_code == 10
    assert "did you mean 'to_date'?" in answer.stderr
    assert "keyz" in answer.stderr


@pytest.mark.timeout(60)
def test_a_source_that_many_tables_share_is_looked_at_once(tmp_path: Path) -> None:
    def gold(number: int) -> Document:
        sources = {f"s{each}": {"table": f"gold.g{max(number - each, 0)}"} for each in (1, 2)}
        query = "SELECT s1.day, count(*) AS n FROM s1 JOIN s2 ON s1.day = s2.day AND s1.day > 'today' GROUP BY s1.day"
        return {"table": f"gold.g{number}", "sources": sources, "query": query, "refresh_by": "day"}

    first = {"table": "gold.g0", "sources": {"o": {"table": "silver.orders"}}, "query": "SELECT day FROM o"}
    found = sql_problems_of(tmp_path, *silver("amount"), first, *map(gold, range(1, 40)))
    assert ["'today', as a time," in problem.message for problem in found] == [True] * 39


def test_a_size_without_a_bound_is_refused_wherever_a_spec_has_sql(tmp_path: Path) -> None:
    large = "repeat(o.order_id, 20000)"
    of_row = "repeat(order_id, 20000)"
    rules = [
        *rule("expect_sql", condition=f"{of_row} = 'a'"),
        *rule("expect_query_to_return_no_rows", "warn", query=f"SELECT {of_row} AS x FROM {{table}}"),
    ]
    columns = {**silver_document()["columns"], "x": {"from": of_row}}
    found = sql_problems_of(
        tmp_path,
        bronze_document(),
        silver_document(columns=columns, expectations=rules, apply_as_deletes=f"{of_row} = 'a'"),
        gold_document(measures={"x": f"max({large})"}),
        query_document(query=f"SELECT o.day, {large} AS x FROM o"),
    )
    assert {problem.key for problem in found} == {
        *("columns.x.from", "apply_as_deletes", "measures.x", "query"),
        *("expectations[0].expect_sql.condition", "expectations[1].expect_query_to_return_no_rows.query"),
    }
    assert all("is 20,000, and 10,000 is the most" in problem.message for problem in found)

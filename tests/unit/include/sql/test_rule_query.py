"""The query of a rule reads the checked table and others in braces, and does nothing else."""

from __future__ import annotations

import pytest

from include.contracts.spec.expectation import Expectation
from include.sql.rule_query import Query

COLUMNS = ["id", "amount", "xs"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {table}",
        "FROM {table} WHERE amount < 0",
        "SELECT ID, count(*) AS n FROM {table} GROUP BY id HAVING n > 1 ORDER BY n",
        "SELECT t.amount.cents FROM {table} t WHERE t.id RLIKE 'x{2}' -- why",
        "WITH late AS (SELECT id AS k FROM {table}) SELECT k FROM late JOIN {silver.customers} c ON c.id = late.k",
        "SELECT * FROM {table} WHERE exists(xs, x -> x > 1)",
        "SELECT x FROM {table} LATERAL VIEW explode(xs) e AS x",
        "SELECT * FROM {table} UNION ALL SELECT * FROM {silver.customers}",
        "SELECT amount FROM {table} JOIN VALUES (1, 2) AS t(p, q) ON p = id WHERE q > (SELECT max(id) FROM {table})",
        "SELECT _batch_seq FROM {table}",
    ],
)
def test_a_query_that_only_reads_is_accepted(query: str) -> None:
    parsed = Query(query)
    assert (parsed.error, parsed.unknown_functions, parsed.unknown_columns(COLUMNS)) == ("", [], [])


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("", "not one SELECT"),
        ("DROP TABLE {table}", "not one SELECT"),
        ("INSERT INTO {table} SELECT 1", "not one SELECT"),
        ("WITH x AS (SELECT 1) INSERT INTO y SELECT * FROM {table}", "not one SELECT"),
        ("CREATE TABLE z AS SELECT * FROM {table}", "not one SELECT"),
        ("SET x = {table}", "not one SELECT"),
        ("EXPLAIN SELECT * FROM {table}", "not one SELECT"),
        ("SELECT * FROM {table}; DROP TABLE x", "not one SELECT"),
        ("SELECT * FROM {table} WHERE", "cannot be parsed"),
        ("SELECT 'a FROM {table}", "cannot be parsed"),
        ("SELECT 1", "does not read {table}"),
        ("SELECT * FROM {table}, silver.customers", "it reads silver.customers"),
        ("SELECT * FROM {table}, delta.`/etc/passwd`", "it reads delta.`/etc/passwd`"),
        ("SELECT * FROM {table} WHERE id IN (SELECT id FROM customers)", "it reads customers"),
        ("SELECT * FROM {table}, range(5)", "it reads RANGE(5)"),
    ],
)
def test_anything_else_is_refused(query: str, error: str) -> None:
    assert error in Query(query).error


def test_functions_and_columns_that_do_not_exist_are_found() -> None:
    query = Query("SELECT to_dat(t.day) AS day_, amuont FROM {table} t WHERE later.x > 1")
    assert query.unknown_functions == ["to_dat"]
    assert query.unknown_columns(COLUMNS) == ["t.day", "amuont", "later.x"]


def test_a_rule_knows_the_tables_of_its_query() -> None:
    text = "SELECT * FROM {table} JOIN {silver.customers} c USING (id), {gold.x}, {silver.customers} d"
    rule = Expectation.model_validate({"expect_query_to_return_no_rows": {"query": text}, "action": "fail"})
    assert rule.other_tables == ["silver.customers", "gold.x"]
    assert rule.rule == f"expect_query_to_return_no_rows({text})"

"""Errors in the SQL of rules, conditions and queries, are found without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from include.catalog import load_catalog
from include.specs.checks.sql import checked_catalog
from include.specs.problem import SpecProblem, SpecsRefusedError
from tests.support.documents.refusals import sql_problems_of
from tests.support.documents.specs import bronze_document, silver_document, write_specs


@pytest.mark.parametrize("action", ["quarantine", "drop", "warn", "fail"])
def test_a_rule_in_sql_may_name_what_its_rows_have(tmp_path: Path, action: str) -> None:
    rules = [
        {"expect_sql": "amount >= 0 OR order_id = 'refund'", "action": action},
        {"expect_sql": {"condition": "order_id rlike '^[a-z]{2}$'"}, "action": action},
        # A row is judged once, when it is written; a version may be checked again.
        {
            "expect_sql": "day <= current_date" if action in ("quarantine", "drop") else "day > '2013-01-01'",
            "action": action,
        },
    ]
    assert sql_problems_of(tmp_path, bronze_document(expectations=rules), silver_document(expectations=rules)) == []


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("amuont > 0", "there is no column 'amuont' here (got 'amuont > 0'); did you mean 'amount'?"),
        ("to_dat(day) > day", "unknown function 'to_dat'"),
        ("amount > avg(amount)", "the aggregate 'avg' is not allowed here"),
        ("amount > (select max(amount) from x)", "use expect_query_to_return_no_rows"),
        ("row_number() over (order by day) > 1", "a window is not allowed here"),
        ("amount > (1", "not an expression: parentheses"),
        ("day <= current_date", "current_date can give another result for the same version"),
        ("rand() > 0", "rand can give another result for the same version"),
        ("day <= 'today'", "'today', as a time, can give another result for the same version"),
        ("event_at < cast('now' as timestamp)", "'now', as a time, can give another result for the same version"),
    ],
)
def test_an_error_in_a_rule_in_sql_is_named(tmp_path: Path, condition: str, said: str) -> None:
    rules = [{"expect_sql": condition, "action": "warn"}]
    found = sql_problems_of(tmp_path, bronze_document(), silver_document(expectations=rules))
    assert said in str(found[0])
    assert found[0].key == "expectations[0].expect_sql.condition"
    line = found[0].file.read_text().splitlines()[found[0].line - 1]
    assert "expect_sql" in line


@pytest.mark.parametrize("arguments", [None, {"conditon": "amount > 1"}, {"condition": 5}])
def test_a_rule_in_sql_without_a_condition_is_named(tmp_path: Path, arguments: Any) -> None:
    rules = [{"expect_sql": arguments, "action": "warn"}]
    folder = write_specs(tmp_path, bronze_document(), silver_document(expectations=rules))
    with pytest.raises(SpecsRefusedError, match=r"expectations\[0\]\.expect_sql"):
        checked_catalog(folder)


def test_a_row_rule_sees_columns_that_the_table_does_not_store(tmp_path: Path) -> None:
    def of(action: str) -> list[SpecProblem]:
        rules = [{"expect_sql": "amount > 0", "action": action}]
        document = silver_document(expectations=rules, except_column_list=["amount"])
        return sql_problems_of(tmp_path, bronze_document(), document)

    assert of("quarantine") == []
    assert "there is no column 'amount' here" in str(of("fail")[0])


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT order_id FROM {table} WHERE amount < 0", ""),
        ("SELECT t.order_id FROM {table} t LEFT ANTI JOIN {bronze.orders} o USING (order_id)", ""),
        ("SELECT amuont FROM {table}", "there is no column 'amuont' here"),
        ("SELECT to_dat(day) FROM {table}", "unknown function 'to_dat'"),
        ("DELETE FROM {table}", "it is not one SELECT"),
        ("SELECT order_id FROM {table} WHERE order_id = 'now'", ""),
        ("SELECT day FROM {table} WHERE day > 'tomorrow'", "'tomorrow', as a time, can give another result"),
        ("SELECT day FROM {table} WHERE day > now()", "now can give another result for the same version"),
        ("SELECT * FROM {table}, silver.orders", "only tables in braces have an exact version"),
    ],
)
def test_the_query_of_a_rule_only_reads(tmp_path: Path, query: str, said: str) -> None:
    rules = [{"expect_query_to_return_no_rows": {"query": query}, "action": "warn"}]
    found = sql_problems_of(tmp_path, bronze_document(), silver_document(expectations=rules))
    assert [said in str(problem) for problem in found] == ([True] if said else [])


def test_a_table_in_the_query_of_a_rule_exists(tmp_path: Path) -> None:
    query = "SELECT * FROM {table} JOIN {silver.costumers} USING (order_id)"
    rules = [{"expect_query_to_return_no_rows": {"query": query}, "action": "warn"}]
    (problem,) = load_catalog(write_specs(tmp_path, bronze_document(), silver_document(expectations=rules))).problems
    assert "no spec creates the table silver.costumers" in problem.message

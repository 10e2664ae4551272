"""Rules that compare a table with its past or other tables, and rules in SQL, and their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millrace.catalog import load_catalog
from millrace.specs.checks.sql import checked_catalog
from millrace.specs.problem import SpecProblem, SpecsRefusedError
from tests.support.documents.refusals import (
    assert_problem,
    assert_rule_refused,
    only_problem,
    problems_of,
    rule,
    sql_problems_of,
)
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs
from tests.support.silver.known_customers import CUSTOMERS, ORDERS, known_customer, shop_documents

EXIST = "expect_column_values_to_exist_in_other_table"
TOGETHER = "expect_compound_columns_to_exist_in_other_table"
FRESH = "expect_table_to_be_fresh"
NEAR = "expect_table_row_count_to_be_near_median"
STABLE = "expect_table_columns_to_be_stable"
RECONCILE = "expect_table_to_reconcile_with_source"
BOTH = ["order_id", "day"]
MEASURES = {"measure": "count(*)", "source_measure": "count(DISTINCT order_id)"}


def test_comparisons_with_their_arguments_are_accepted(tmp_path: Path) -> None:
    rules = [
        rule(FRESH, "fail", column="day", max_age="2 days", as_of="commit"),
        rule(NEAR, "warn", of_last=7, min_percent=50, max_percent=200),
        rule(NEAR, "warn", of_last=7, min_percent=50, rows="applied"),
        rule(EXIST, "fail", column="order_id", other_table="bronze.orders", other_column="order_id", mostly=0.9),
        rule(TOGETHER, "fail", column_list=BOTH, other_table="bronze.orders", other_column_list=BOTH),
        rule(STABLE, "fail"),
        rule(STABLE, "fail", allow=["added"]),
        rule("expect_column_null_share_to_be_stable", "warn", column="amount", max_change=0.02),
        rule("expect_column_distribution_to_be_stable", "warn", column="amount", max_psi=0.25),
        rule(RECONCILE, "fail", source="bronze.orders", **MEASURES, tolerance_percent=0.5),
    ]
    of_gold = rule(RECONCILE, "fail", source="silver.orders", measure="sum(orders)", source_measure="count(*)")
    silver = silver_document(expectations=[one for (one,) in rules])
    write_specs(tmp_path, bronze_document(), silver, gold_document(expectations=of_gold))
    assert problems_of(tmp_path) == ()


@pytest.mark.parametrize(
    ("expectations", "key", "message", "fix"),
    [
        (rule(FRESH, "fail", column="event_at", max_age="1 week"), "max_age", "an age is", "write it as"),
        (rule(FRESH, "fail", column="amount", max_age="1 days"), "column", "is int", "name one of day, event"),
        (rule(FRESH, "fail", column="event_at", max_age="1 days", as_of="now"), "as_of", "unknown value",
         "known are interval_end, commit"),
        (rule(NEAR, "warn", of_last=0, min_percent=5), "of_last", "at least 1", ""),
        (rule(NEAR, "warn", of_last=7, min_percent=5, rows="aplied"), "rows", "unknown", "did you mean 'appl"),
        (rule(EXIST, "fail", column="order_id", other_table="orders", other_column="order_id"), "other_table",
         "a table is needed here", "write it as <layer>.<name>"),
        (rule(TOGETHER, "fail", column_list=BOTH, other_table="bronze.orders", other_column_list=["day"]),
         "other_column_list", "2 columns are compared with 1", "name 2"),
        (rule(RECONCILE, "fail", source="bronze.planes", **MEASURES), "source", "the table does not read this table",
         "did you mean 'bronze.orders'?"),
    ],
)  # fmt: skip
def test_each_mistake_is_named_with_a_fix(tmp_path: Path, expectations: Any, key: str, message: str, fix: str) -> None:
    assert_rule_refused(tmp_path, expectations, key, message, fix)


def test_rows_may_wait_for_another_silver_table_which_is_built_before(tmp_path: Path) -> None:
    write_specs(tmp_path, *shop_documents(known_customer(wait_at_most="7 days")))
    catalog = load_catalog(tmp_path)
    assert catalog.problems == ()
    assert catalog.specs[ORDERS].upstream_tables == ("bronze.orders", CUSTOMERS)
    together = {"column_list": ["customer_id"], "other_table": "silver.z", "other_column_list": ["customer_id"]}
    *others, customers, bronze, orders = shop_documents({TOGETHER: together, "action": "quarantine"})
    write_specs(tmp_path, {**customers, "table": "silver.z"}, *others, bronze, orders)
    assert list(load_catalog(tmp_path).specs)[-2:] == ["silver.z", ORDERS], "not by name"


@pytest.mark.parametrize(
    ("arguments", "key", "message", "fix"),
    [
        ({"other_table": "silver.customer"}, "other_table", "no spec creates", "did you mean 'silver.customers"),
        ({"other_table": "bronze.customers"}, "other_table", "wait only for a silver", "name a silver table"),
        ({"other_column": "customer"}, "other_column", "has no such column", "did you mean 'customer_id'?"),
        ({"column": "customer"}, "column", "has no such column", "did you mean 'customer_id'?"),
        ({"column": "amount"}, "column", "amount is int, and silver.customers.customer_id is string", "give"),
        ({"wait_at_most": "a week"}, "wait_at_most", "an age is needed here", "write it as '90 minutes'"),
        ({"mostly": 0.9}, "mostly", "has no tolerance", "leave it out"),
        ({"other_table": ORDERS, "other_column": "customer_id"}, "other_table",
         "the tables read one another: silver.orders -> silver.orders", "let silver.orders read only tables"),
    ],
)  # fmt: skip
def test_each_mistake_in_a_rule_for_which_rows_wait_is_named(
    tmp_path: Path, arguments: dict[str, Any], key: str, message: str, fix: str
) -> None:
    problem = only_problem(write_specs(tmp_path, *shop_documents(known_customer(**arguments))))
    assert_problem(problem, f"expectations[0].{EXIST}.{key}", message, fix)


def test_rows_wait_neither_in_bronze_nor_in_a_full_snapshot_nor_in_gold(tmp_path: Path) -> None:
    customers, silver, _, orders = shop_documents()
    waits = {"column": "customer_id", "other_table": CUSTOMERS, "other_column": "customer_id"}
    documents = [customers, silver, bronze_document(columns=orders["columns"], expectations=rule(EXIST, **waits))]
    assert "bronze keeps what it receives" in only_problem(write_specs(tmp_path / "bronze", *documents)).message
    snapshot = {**orders, "snapshot": "full", "sequence_by": []}
    del snapshot["apply_as_deletes"]
    found = only_problem(write_specs(tmp_path / "snapshot", customers, silver, shop_documents()[2], snapshot))
    assert "a row of a full snapshot does not wait" in found.message
    of_gold = gold_document(expectations=rule(EXIST, column="day", other_table=CUSTOMERS, other_column="event_at"))
    found, *_ = problems_of(write_specs(tmp_path / "gold", *shop_documents(), of_gold))
    assert "a gold row is a group of rows" in found.message


def test_a_limit_of_the_wait_needs_rows_that_wait(tmp_path: Path) -> None:
    fails = {**known_customer(wait_at_most="7 days"), "action": "fail"}
    found = only_problem(write_specs(tmp_path, *shop_documents(fails)))
    assert (found.message, found.fix[:12]) == ("only a row in quarantine waits", "leave it out")


def test_tables_whose_rows_wait_for_one_another_are_refused(tmp_path: Path) -> None:
    bronze, customers, *others = shop_documents()
    back = rule(EXIST, column="customer_id", other_table=ORDERS, other_column="customer_id")
    found = only_problem(write_specs(tmp_path, bronze, {**customers, "expectations": back}, *others))
    assert "the tables read one another: silver." in found.message
    assert found.key == f"expectations[0].{EXIST}.other_table"


@pytest.mark.parametrize("action", ["quarantine", "drop", "warn", "fail"])
def test_a_rule_in_sql_may_name_what_its_rows_have(tmp_path: Path, action: str) -> None:
    # A row is judged once, when it is written; a version may be checked again.
    clock = "day <= current_date" if action in ("quarantine", "drop") else "day > '2013-01-01'"
    conditions = ("amount >= 0 OR order_id = 'refund'", {"condition": "order_id rlike '^[a-z]{2}$'"}, clock)
    rules = [{"expect_sql": condition, "action": action} for condition in conditions]
    assert sql_problems_of(tmp_path, bronze_document(expectations=rules), silver_document(expectations=rules)) == []


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("amuont > 0", "there is no column 'amuont' here (got 'amuont > 0'); did you mean 'amount'?"),
        ("amount > avg(amount)", "the aggregate 'avg' is not allowed here"),
        ("amount > (select max(amount) from x)", "use expect_query_to_return_no_rows"),
        ("row_number() over (order by day) > 1", "a window is not allowed here"),
        ("day <= current_date", "current_date can give another result for the same version"),
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

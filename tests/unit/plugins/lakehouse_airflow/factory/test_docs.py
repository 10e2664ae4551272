"""The pages of a DAG and its tables follow from the specs alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from lakehouse_airflow.factory import (
    build_delete_approval_dag,
    build_gate_override_dag,
    build_quarantine_replay_dag,
    build_subject_erasure_dag,
    build_table_rebuild_dag,
    build_table_repair_dag,
    build_table_vacuum_dag,
)
from lakehouse_airflow.factory.docs import domain_doc, table_doc
from millrace.specs.invalid_spec import InvalidSpec
from millrace.specs.problem import SpecProblem
from tests.support.documents.specs import bronze_spec, gold_query_spec, gold_spec, silver_spec

RULE = {
    "expect_column_values_to_be_between": {"column": "amount", "min_value": 0, "max_value": 900},
    "action": "quarantine",
    "reason": "a till holds | no more",
}
FRESH = {
    "expect_table_to_be_fresh": {"column": "event_at", "max_age": "36 hours"},
    "action": "fail",
    "warn": {"max_age": "26 hours"},
}
COLUMNS = {
    "order_id": {"type": "string", "nullable": False, "description": "number of the order"},
    "amount": {"type": "int", "description": "price in cents"},
    "event_at": {"type": "timestamp"},
    "event_seq": {"type": "int"},
}
BRONZE = bronze_spec(description="Orders | as delivered.\nLate ones too.")
SILVER = silver_spec(owner="sales", columns=COLUMNS, expectations=[RULE, FRESH])
GOLD = gold_spec()


def test_the_page_of_a_table_says_what_it_is_what_each_column_means_and_each_rule_with_its_bounds() -> None:
    page = table_doc(SILVER, owner="platform")
    for fact in ("| reads | `bronze.orders` |", "| one row for each | order_id |", "| owner | sales |"):
        assert fact in page
    assert "| owner | platform |" in table_doc(BRONZE, owner="platform")
    assert "| `order_id` | string, never null | number of the order |" in page
    assert "| `amount` | int | price in cents |" in page
    assert "| `revenue` | measure | `sum(o.amount)` |" in table_doc(GOLD)
    assert "```sql\nSELECT day, order_id, amount FROM o\n```" in table_doc(gold_query_spec())
    between = "expect_column_values_to_be_between(amount, min_value=0, max_value=900)"
    assert f"| `{between}` | quarantine | a till holds \\| no more |" in page
    fail, warn = (f"`expect_table_to_be_fresh(event_at, max_age={age} hours)`" for age in (36, 26))
    assert f"| freshness | {fail}, else fail; {warn}, else warn |" in page
    assert f"| {warn} | warn |  |" in page, "the narrower band is a rule of its own"
    assert "no rule checks the age" in table_doc(GOLD)


def test_a_picture_in_a_text_of_a_spec_is_shown_as_text() -> None:
    picture = "![seen](https://example.com/p.png)"
    columns = {**COLUMNS, "event_seq": {"type": "int", "description": picture}}
    silver = silver_spec(description=picture, columns=columns, expectations=[{**RULE, "reason": picture}])
    problem = SpecProblem(Path("orders.yaml"), 1, "keys", picture, "unknown column", "did you mean 'order_id'?")
    invalid = InvalidSpec("silver.orders", "shop", (problem,))
    for page, pictures in ((table_doc(silver), 3), (domain_doc("shop", [silver]), 1), (table_doc(invalid), 1)):
        html = MarkdownIt("commonmark").enable("table").render(page)
        assert ("<img" in html, html.count("![seen](")) == (False, pictures)


def test_the_page_of_a_domain_is_a_table_whatever_is_in_the_descriptions() -> None:
    rows = [line for line in domain_doc("shop", [BRONZE, SILVER, GOLD]).splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert "[glossary](/lakehouse/docs/glossary.md)" in domain_doc("shop", [])
    link = "[`bronze.orders`](/lakehouse/tables/bronze.orders)"
    assert rows[2].startswith(f"| {link} | Orders \\| as delivered. Late ones too. | landing files `orders/")


@pytest.mark.parametrize(("setting", "may_the_asker"), [("true", False), ("false", True)])
def test_the_page_of_a_dag_that_asks_says_whether_the_one_who_triggers_it_may_approve(
    monkeypatch: pytest.MonkeyPatch, setting: str, may_the_asker: bool
) -> None:
    monkeypatch.setenv("LAKEHOUSE_SECOND_PERSON", setting)
    of_tables = build_table_rebuild_dag, build_table_repair_dag, build_table_vacuum_dag, build_subject_erasure_dag
    for build in (build_gate_override_dag, build_delete_approval_dag, *of_tables, build_quarantine_replay_dag):
        page = " ".join(str(build(owner="platform").doc_md).split())
        assert ("another person than the one who triggered it approves" in page) is not may_the_asker
        assert ("the one who triggered it may do, too" in page) is may_the_asker

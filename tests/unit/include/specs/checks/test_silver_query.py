"""A silver table with a query over silver tables: what is refused, and in which order the tables are built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from include.catalog import load_catalog
from include.contracts.spec.table_spec import SilverQuerySpec
from include.specs.checks.sql import refresh_in_words, sql_problems
from tests.support.documents.refusals import only_problem, problems_of
from tests.support.documents.specs import silver_document, write_specs
from tests.support.silver.enriched_orders import CHAIN, CUSTOMERS, ENRICHED, ORDERS, enriched_document, enriched_orders

GOLD = "gold.revenue"


def test_it_is_built_after_the_silver_tables_that_it_reads_whatever_their_names_are(tmp_path: Path) -> None:
    earlier = enriched_document("silver.all_orders", sources={"o": {"table": ENRICHED}}, query="SELECT order_id FROM o")
    catalog = load_catalog(write_specs(tmp_path, *enriched_orders(), earlier))
    assert (catalog.problems, sql_problems(catalog)) == ((), [])
    assert [table for table in catalog.tables if table != "silver.all_orders"] == list(sorted_by_layer(CHAIN))
    assert catalog.tables.index(ENRICHED) < catalog.tables.index("silver.all_orders") < catalog.tables.index(CHAIN[-1])
    spec = catalog.spec(ENRICHED)
    assert isinstance(spec, SilverQuerySpec)
    assert spec.source_tables == (ORDERS, CUSTOMERS)
    found = "traced through o: order_id; if c changes, found by c.customer_id = o.customer_id"
    assert refresh_in_words(spec, catalog.specs) == f"refreshed by order_id, {found}"


def sorted_by_layer(tables: tuple[str, ...]) -> list[str]:
    """The chain, with bronze by name."""
    return [*sorted(tables[:2]), *sorted(tables[2:4]), *tables[4:]]


def test_tables_of_silver_that_read_one_another_are_refused_with_the_way_around(tmp_path: Path) -> None:
    both = {"o": {"table": ORDERS}, "b": {"table": "silver.b"}}
    query = "SELECT o.order_id, o.amount, b.order_id AS other FROM o LEFT JOIN b ON b.order_id = o.order_id"
    back = enriched_document("silver.b", sources={"e": {"table": ENRICHED}}, query="SELECT e.order_id FROM e")
    catalog = load_catalog(write_specs(tmp_path, *enriched_orders(sources=both, query=query), back))
    cycles = [problem for problem in catalog.problems if "read one another" in problem.message]
    assert [(ENRICHED in problem.message, "silver.b" in problem.message) for problem in cycles] == [(True, True)]
    assert set(catalog.invalid) & {ENRICHED, "silver.b"}
    assert {ORDERS, CUSTOMERS} <= catalog.specs.keys()


RULE = {"expect_column_values_to_not_be_null": {"column": "segment"}}


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"sources": {"o": {"table": "bronze.orders"}, "c": {"table": CUSTOMERS}}}, "sources.o.table", "silver.<",
         "merge its events"),
        ({"sources": {"o": {"table": ORDERS}, "c": {"table": GOLD}}}, "sources.c.table", "silver.<name>", "in gold"),
        ({"sources": {"o": {"table": ORDERS}, "c": {"table": "silver.custmers"}}}, "sources.c.table",
         "no spec creates", CUSTOMERS),
        ({"sources": [{"table": ORDERS}]}, "sources", "a mapping is needed here", ""),
        ({"keys": None}, "keys", "a list is needed here", ""),
        ({"stored_as_scd_type": 2}, "stored_as_scd_type", "unknown key", "computed from those of its sources"),
        ({"columns": {"order_id": {}}}, "columns", "unknown key", "not merged from events"),
        ({"group_by": {"day": "o.day"}}, "group_by", "the query itself says it", ""),
        ({"expectations": [{**RULE, "action": "quarantine"}]}, "expectations[0].action", "never received", "WHERE"),
    ],
)  # fmt: skip
def test_what_a_computed_row_cannot_have_is_refused_with_its_reason_and_the_way_out(
    tmp_path: Path, changes: dict[str, Any], key: str, message: str, fix: str
) -> None:
    problem = only_problem(write_specs(tmp_path, *enriched_orders(**changes)[:5]))
    assert (problem.key, problem.file.name) == (key, "orders_enriched.yaml")
    assert message in problem.message
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"keys": ["id"]}, "keys[0]", "the table has no such column"),
        ({"query": "SELECT o.order_id, c.sgment FROM o LEFT JOIN c USING (customer_id)"}, "query",
         "no column 'sgment'"),
        ({"expectations": [{"expect_column_values_to_not_be_null": {"column": "x"}, "action": "warn"}]},
         "expectations[0].expect_column_values_to_not_be_null.column", "no such column"),
    ],
)  # fmt: skip
def test_names_that_the_query_does_not_give_are_found(
    tmp_path: Path, changes: dict[str, Any], key: str, message: str
) -> None:
    catalog = load_catalog(write_specs(tmp_path, *enriched_orders(**changes)[:5]))
    (problem,) = sql_problems(catalog)
    assert (problem.key, message in problem.message) == (key, True), problem


def test_a_table_without_a_query_that_names_a_silver_source_is_shown_the_way(tmp_path: Path) -> None:
    problem = only_problem(write_specs(tmp_path, *enriched_orders()[:4], silver_document("silver.x", source=ORDERS)))
    assert (problem.key, "`query`" in problem.fix) == ("source", True)


def test_readers_of_a_wrong_silver_table_wait_also_in_silver(tmp_path: Path) -> None:
    documents = {document["table"]: document for document in enriched_orders()}
    documents[ORDERS]["keyz"] = ["order_id"]
    catalog = load_catalog(write_specs(tmp_path, *documents.values()))
    assert set(catalog.invalid) == {ORDERS}
    wrong = enriched_document(keyz=["order_id"])
    catalog = load_catalog(write_specs(tmp_path, wrong))
    assert catalog.invalid[ENRICHED].source_tables == (ORDERS, CUSTOMERS)


def test_its_keys_are_rules_of_the_gate(tmp_path: Path) -> None:
    assert problems_of(write_specs(tmp_path, *enriched_orders())) == ()
    one, several = (
        SilverQuerySpec.model_validate(enriched_document(keys=keys, expectations=[{**RULE, "action": "warn"}]))
        for keys in (["order_id"], ["order_id", "amount"])
    )
    assert [rule.rule for rule in one.table_rules] == [
        "expect_column_values_to_be_unique(order_id)",
        "expect_column_values_to_not_be_null(order_id)",
        "expect_column_values_to_not_be_null(segment)",
    ]
    assert [rule.rule for rule in several.table_rules][:2] == [
        "expect_compound_columns_to_be_unique(order_id, amount)",
        "expect_column_values_to_not_be_null(order_id)",
    ]
    assert one.suite_hash != several.suite_hash

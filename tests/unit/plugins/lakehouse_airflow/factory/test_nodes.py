"""What a DAG is made of follows from the specs alone."""

from __future__ import annotations

from include.contracts.job.args import Job
from lakehouse_airflow.factory.docs import domain_doc, table_doc
from lakehouse_airflow.factory.nodes import layers_of
from tests.support.documents.specs import bronze_spec, gold_spec, silver_spec

RULE = {
    "expect_column_values_to_not_be_null": {"column": "order_id"},
    "action": "quarantine",
    "reason": "it is the key",
}
BRONZE = bronze_spec(description="Orders | as delivered.\nLate ones too.")
SILVER = silver_spec(owner="sales", expectations=[RULE])
GOLD = gold_spec()


def test_layers_and_tables_keep_the_build_order() -> None:
    layers = layers_of([BRONZE, SILVER, GOLD])
    assert [(layer, [node.table for node in nodes]) for layer, nodes in layers.items()] == [
        ("bronze", ["bronze.orders"]),
        ("silver", ["silver.orders"]),
        ("gold", ["gold.revenue_daily"]),
    ]


def test_a_table_is_written_by_its_layers_job_after_its_sources() -> None:
    nodes = [node for tables in layers_of([BRONZE, SILVER, GOLD]).values() for node in tables]
    assert [(node.name, node.writer, node.after) for node in nodes] == [
        ("orders", Job.BRONZE_INGEST, ()),
        ("orders", Job.SILVER_MERGE, ("bronze.orders",)),
        ("revenue_daily", Job.GOLD_AGGREGATE, ("silver.orders",)),
    ]


def test_a_source_of_another_domain_is_no_task_to_wait_for() -> None:
    assert layers_of([SILVER])["silver"][0].after == ()


def test_two_aliases_of_one_table_are_one_task_to_wait_for() -> None:
    twice = {
        "o": {"table": "silver.orders"},
        "p": {"table": "silver.orders", "join": "left", "on": "o.order_id = p.order_id"},
    }
    gold = gold_spec(sources=twice, refresh_from={"o": "day", "p": "day"})
    assert layers_of([SILVER, gold])["gold"][0].after == ("silver.orders",)


def test_the_page_of_a_table_says_what_it_is_and_what_its_data_must_look_like() -> None:
    page = table_doc(SILVER)
    assert "Reads `bronze.orders`." in page
    assert "One row for each order_id." in page
    assert "- `expect_column_values_to_not_be_null(order_id)`, else quarantine: it is the key" in page


def test_the_page_of_a_domain_is_a_table_whatever_is_in_the_descriptions() -> None:
    rows = [line for line in domain_doc("shop", [BRONZE, SILVER, GOLD]).splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert "[glossary](/lakehouse/docs/glossary.md)" in domain_doc("shop", [])
    assert rows[2].startswith("| `bronze.orders` | Orders \\| as delivered. Late ones too. | landing files `orders/")

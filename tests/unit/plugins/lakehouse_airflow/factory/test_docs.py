"""The pages of a DAG and its tables follow from the specs alone."""

from __future__ import annotations

from lakehouse_airflow.factory.docs import domain_doc, table_doc
from tests.support.documents.specs import bronze_spec, gold_spec, silver_spec

RULE = {
    "expect_column_values_to_not_be_null": {"column": "order_id"},
    "action": "quarantine",
    "reason": "it is the key",
}
BRONZE = bronze_spec(description="Orders | as delivered.\nLate ones too.")
SILVER = silver_spec(owner="sales", expectations=[RULE])
GOLD = gold_spec()


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

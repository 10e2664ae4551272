"""A thousand small tables, in chains of bronze, silver and gold."""

from __future__ import annotations

from pathlib import Path

from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs


def write_chains(folder: Path, chains: int, domain: str) -> int:
    """Write `chains` chains of three tables below `folder`, and return the number of tables."""
    for number in range(chains):
        name = f"orders_{number:04}"
        rule = {
            "expect_column_values_to_not_be_null": {"column": "order_id"},
            "action": "quarantine",
            "reason": "a key",
        }
        total = {"expect_table_row_count_to_be_between": {"min_value": 1}, "action": "fail", "reason": "no empty days"}
        write_specs(
            folder,
            bronze_document(f"bronze.{name}", description=f"Orders {number} as delivered.", expectations=[total]),
            silver_document(f"silver.{name}", source=f"bronze.{name}", owner="sales", expectations=[rule, total]),
            gold_document(f"gold.{name}", sources={"o": {"table": f"silver.{name}"}}, description="Orders a day."),
            domain=domain,
        )
    return 3 * chains

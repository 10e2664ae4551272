"""What a job knows of its tables before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace_spark.runtime.context import JobContext
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import Lakehouse

RESTRICTED = {"order_id": {"type": "string", "classification": "restricted"}}
QUERY = "SELECT t.order_id FROM {table} t JOIN {bronze.people} p ON cast(p.order_id AS int) > 0"


@pytest.mark.parametrize(("query", "is_hidden"), [(QUERY, True), ("SELECT order_id FROM {table}", False)])
def test_a_rule_that_reads_a_table_with_restricted_columns_hides_the_values_in_errors(
    tmp_path: Path, query: str, is_hidden: bool
) -> None:
    lakehouse = Lakehouse(tmp_path)
    rule = {"expect_query_to_return_no_rows": {"query": query}, "action": "fail"}
    people = bronze_document("bronze.people", columns={**bronze_document()["columns"], **RESTRICTED})
    lakehouse.specs(bronze_document(), people, silver_document(expectations=[rule]))
    assert JobContext(lakehouse.args("silver.orders")).hides_values is is_hidden

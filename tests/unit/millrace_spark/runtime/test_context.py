"""What a job knows of its tables before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import run_and_report
from tests.support.documents.specs import bronze_document, query_document, silver_document
from tests.support.lakehouse import Lakehouse

RESTRICTED = {"order_id": {"type": "string", "classification": "restricted"}}
HIDDEN = "Quimby"
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


def test_so_does_a_rebuild_which_may_compute_every_table_that_reads_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lakehouse = Lakehouse(tmp_path)
    people = bronze_document("bronze.people", columns={**bronze_document()["columns"], **RESTRICTED})
    sources = {"o": {"table": "bronze.orders"}, "p": {"table": "bronze.people"}}
    both = query_document(sources=sources, query="SELECT p.order_id FROM o JOIN p USING (order_id)")
    lakehouse.specs(bronze_document(), people, both)

    def run(_: JobContext) -> JobReport:
        raise RuntimeError(f"[CAST_INVALID_INPUT] The value '{HIDDEN}' cannot be cast")

    for job, is_hidden in ((Job.TABLE_REBUILD, True), (Job.BRONZE_INGEST, False)):
        caplog.clear()
        report = run_and_report(job, run, lakehouse.args("bronze.orders"))
        assert [HIDDEN in text for text in (report.message, caplog.text)] == [not is_hidden] * 2

"""When maintenance verifies a gold table: rows that nobody has compared yet, of a table that is computed in parts."""

from __future__ import annotations

from typing import Any

from deltalake import DeltaTable

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from include.contracts.spec.table_spec import GoldSpec
from include.control.maintenance.verification_due import why_not_due
from include.errors import Outcome
from spark_jobs.runtime.context import JobContext
from tests.support.documents.specs import gold_document, query_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

SILVER, GOLD = "silver.orders", "gold.revenue_daily"


def verify(shop: Lakehouse, **more: Any) -> JobReport:
    return shop.run(GOLD, job=Job.TABLE_VERIFY, **more)


def due(shop: Lakehouse) -> str:
    context = JobContext(shop.args(GOLD))
    spec = context.spec
    assert isinstance(spec, GoldSpec)
    return why_not_due(spec, context.catalog, context.ops)


def test_maintenance_verifies_the_rows_of_a_version_once_and_never_those_of_another_spec(lakehouse: Lakehouse) -> None:
    assert due(lakehouse) == f"{GOLD} has no certified version to verify"
    given(lakehouse, SILVER, [order(1, 5), order(2, 7, of_day=2)], 1)
    lakehouse.run(GOLD, 1)
    assert not due(lakehouse)
    assert verify(lakehouse, sample=1).outcome is Outcome.NO_OP
    assert due(lakehouse) == f"{GOLD}: the rows of version 1 were verified already"
    DeltaTable(str(lakehouse.paths.table(GOLD))).optimize.compact()
    assert "were verified already" in due(lakehouse), "compaction changes no row"
    DeltaTable(str(lakehouse.paths.table(GOLD))).delete("day = '2013-01-01'")
    given(lakehouse, SILVER, [order(3, 9, of_day=3)], 2)
    version = lakehouse.run(GOLD, 2).certified_version
    assert not due(lakehouse)
    lakehouse.specs(gold_document(measures={"orders": "count(*)", "revenue": "max(o.amount)"}))
    assert "its spec has changed since" in due(lakehouse)
    lakehouse.specs(gold_document())
    assert verify(lakehouse).outcome is Outcome.GATE_FAILED
    assert due(lakehouse) == f"{GOLD}: a verification has found version {version} wrong already"


def test_maintenance_verifies_a_query_by_the_column_that_was_found_and_not_one_that_is_computed_whole(
    lakehouse: Lakehouse,
) -> None:
    lakehouse.specs(query_document(GOLD))
    given(lakehouse, SILVER, [order(1, 5), order(2, 7, of_day=2), order(3, 1, of_day=2)], 1)
    lakehouse.run(GOLD, 1)
    assert not due(lakehouse)
    report = verify(lakehouse, sample=1)
    assert (report.outcome, report.details["groups"]) in [(Outcome.NO_OP, 1), (Outcome.NO_OP, 2)]
    assert "of 1 value of day compared" in report.message

    lakehouse.specs(query_document(GOLD, query="SELECT max(day) AS day, max(order_id) AS order_id, 1 AS amount FROM o"))
    assert "each run computes all of it: it comes out of MAX" in due(lakehouse)

"""An override on real Delta: the tables below read the version, and the rules judge the next one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job
from millrace.contracts.job.interval_args import DomainArgs
from millrace.control.gates.gates import Gates
from millrace.control.gates.overrides import override
from millrace.control.gates.result import Override
from millrace.errors import ExitCode, Outcome
from millrace_spark.jobs.run_intervals import run_intervals
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day

BRONZE, SILVER = "bronze.orders", "silver.orders"
AT_MOST = "expect_table_row_count_to_be_between"
RULE = {AT_MOST: {"max_value": 1}, "action": "fail", "reason": "one at most"}


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Two days of one order each; bronze may have one row, so that its second version was refused."""
    shared.specs(bronze_document(expectations=[RULE]), silver_document())
    reports = [given(shared, BRONZE, [order(number, number)], number) for number in (1, 2)]
    given(shared, SILVER, [order(1, 1)])
    assert reports[-1].certified_version == 1
    return shared


def let_pass(shop: Lakehouse, version: int) -> None:
    said = Override(by="ann", reason="a holiday", run_id=f"manual__{version}", at=datetime(2013, 1, 5, tzinfo=UTC))
    override(load_catalog(shop.folder / "tables").spec(BRONZE), version, said, shop.paths)


def interval_args(shop: Lakehouse, folder: str) -> DomainArgs:
    return DomainArgs(
        domain="shop",
        run_id="cli",
        root=shop.paths.root,
        landing=str(shop.folder / "landing"),
        tables=shop.folder / "tables",
        reports=Path(shop.folder / folder),
        table=(BRONZE, SILVER),
    )


def test_downstream_tables_continue_with_the_overridden_version_and_the_rules_judge_the_next_one(
    shop: Lakehouse,
) -> None:
    refused = list(run_intervals(interval_args(shop, "before").for_intervals([day(2)])))
    assert [report.outcome for report in refused] == [Outcome.NO_OP, Outcome.NOT_READY]
    let_pass(shop, 2)
    results = Gates(shop.paths).results(BRONZE)
    report = shop.run(BRONZE, 2, job=Job.QUALITY_GATE)
    assert (report.outcome, report.version, report.certified_version) == (Outcome.NO_OP, 2, 2)
    assert "certified by hand by ann" in "".join(report.notes)
    assert Gates(shop.paths).results(BRONZE) == results, "the gate's own job checks nothing"

    bronze, silver = run_intervals(interval_args(shop, "after").for_intervals([day(2)]))

    assert (bronze.exit_code, bronze.certified_version, bronze.certified_moved) == (ExitCode.OK, 2, False)
    [note] = bronze.notes
    assert note.startswith("readers use version 2 of bronze.orders, certified by hand by ann at 2013-01-05 00:00 UTC")
    assert (silver.outcome, silver.rows.read) == (Outcome.COMMITTED, 1)
    assert shop.rows(SILVER, "order_id") == [("o1",), ("o2",)]
    third = given(shop, BRONZE, [order(3, 3)], 3)
    assert (third.outcome, third.version, third.certified_version) == (Outcome.COMMITTED, 3, 2)
    assert "observed 3 (one at most); readers stay on version 2" in third.message
    assert third.message.endswith(
        "certified by hand by ann at 2013-01-05 00:00 UTC: a holiday; that covers no later version."
    )
    assert shop.run(SILVER, 3).outcome is Outcome.NO_OP, "what was let pass, and nothing more"


def test_a_fixed_rule_replaces_the_override_of_a_person(shop: Lakehouse) -> None:
    let_pass(shop, 2)
    shop.specs(bronze_document(expectations=[{**RULE, AT_MOST: {"max_value": 2}}]), silver_document())
    report = shop.run(BRONZE, 2, job=Job.QUALITY_GATE)
    assert (report.outcome, report.certified_version, report.certified_moved) == (Outcome.NO_OP, 2, False)
    assert not [note for note in report.notes if "overridden" in note]
    assert Gates(shop.paths).override_in_force(BRONZE) is None

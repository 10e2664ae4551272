"""The gate on real Delta: exactly the checked version is certified, whatever else is committed in the meantime."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.control.gates.gates import Gates
from millrace.errors import ExitCode, Outcome
from millrace_spark.layers import writing
from millrace_spark.layers.gate.gate import run_gate
from millrace_spark.runtime.session import own_session
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import commit_file, optimize

BRONZE, SILVER = "bronze.orders", "silver.orders"
AT_MOST = "expect_table_row_count_to_be_between"


class Died(BaseException):
    """The driver ended here."""


@pytest.fixture
def shop(lakehouse: Lakehouse) -> Lakehouse:
    """Bronze may have two rows at most."""
    lakehouse.specs(bronze_document(expectations=[at_most(2)]))
    return lakehouse


def run(shop: Lakehouse, number: int) -> JobReport:
    """Load the order of a day into bronze."""
    return given(shop, BRONZE, [order(number, number)], number)


def at_most(rows: int) -> dict[str, Any]:
    return {AT_MOST: {"max_value": rows}, "action": "fail", "reason": f"{rows} at most"}


def write_without_gate(shop: Lakehouse, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit the day's batch; the driver dies before the gate."""
    instead_of_the_gate(monkeypatch, die)
    with pytest.raises(Died):
        run(shop, number)
    monkeypatch.setattr(writing, "run_gate", run_gate)


def instead_of_the_gate(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Let something happen between the write and its gate."""

    def run(*args: Any) -> Any:
        monkeypatch.setattr(writing, "run_gate", run_gate)
        meanwhile()
        return run_gate(*args)

    monkeypatch.setattr(writing, "run_gate", run)


def die() -> None:
    raise Died


def gate(shop: Lakehouse) -> JobReport:
    return shop.run(BRONZE, 1, job=Job.QUALITY_GATE)


def verdicts(shop: Lakehouse) -> list[tuple[int, bool]]:
    return [(one.result.version, one.result.passed) for one in Gates(shop.paths).results(BRONZE)]


def test_a_table_that_another_tool_writes_is_checked_at_its_newest_rows(lakehouse: Lakehouse) -> None:
    table = "bronze.partners"
    fresh = {"expect_table_to_be_fresh": {"column": "event_at", "max_age": "2 days"}, "action": "fail"}
    lakehouse.specs(bronze_document(table, expectations=[at_most(2), fresh]))
    path = str(lakehouse.paths.table(table))
    assert lakehouse.run(table, job=Job.QUALITY_GATE).outcome is Outcome.NOT_READY
    for number in (1, 2):
        write_deltalake(path, pa.table({"order_id": [str(number)], "event_at": [datetime.now(UTC)]}), mode="append")
    assert optimize(lakehouse.paths.table(table)) == 2
    report = lakehouse.run(table, job=Job.QUALITY_GATE)
    assert (report.outcome, report.version, report.certified_moved) == (Outcome.NO_OP, 1, True)
    assert report.certified_version == 2, "OPTIMIZE has changed no row"
    again = lakehouse.run(table, job=Job.QUALITY_GATE)
    assert (again.version, again.certified_moved, again.batch_seq) == (1, False, None)
    write_deltalake(path, pa.table({"order_id": ["3"], "event_at": [datetime.now(UTC)]}), mode="append")
    refused = lakehouse.run(table, job=Job.QUALITY_GATE)
    assert (refused.outcome, refused.version, refused.certified_version) == (Outcome.GATE_FAILED, 3, 2)

    write_deltalake(path, pa.table({"order_id": ["4"], "event_at": [datetime.now(UTC)]}), mode="append")
    log = commit_file(lakehouse.paths.table(table), 4)
    log.write_text(log.read_text().replace('"timestamp":', '"tool_time":'))
    without_time = lakehouse.run(table, job=Job.QUALITY_GATE)
    assert without_time.outcome is Outcome.INCONSISTENT
    assert "has no timestamp" in without_time.message


def test_a_batch_that_commits_between_a_write_and_its_gate_is_not_certified_with_it(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead_of_the_gate(monkeypatch, lambda: write_without_gate(shop, 2, monkeypatch))
    first = run(shop, 1)
    assert (first.version, first.certified_version, first.certified_moved) == (1, 1, True)
    assert len(shop.rows(BRONZE, "order_id")) == 2, "nothing was committed in between"
    assert verdicts(shop) == [(1, True)]
    assert optimize(shop.paths.table(BRONZE)) == 3
    assert Gates(shop.paths).certified(BRONZE) == 1

    gate_report = gate(shop)

    assert (gate_report.outcome, gate_report.version) == (Outcome.NO_OP, 2)
    assert (gate_report.certified_version, gate_report.certified_moved) == (3, True), "OPTIMIZE inherits the verdict"
    assert verdicts(shop) == [(1, True), (2, True)]
    assert shop.run(SILVER, 2).rows.read == 2, "a range that ends with OPTIMIZE"


def test_a_gate_that_comes_late_never_moves_the_certified_version_back(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead_of_the_gate(monkeypatch, lambda: run(shop, 2))
    late = run(shop, 1)
    assert verdicts(shop) == [(2, True)], "the certificate of the later version covers the earlier one"
    assert (late.version, late.certified_version, late.certified_moved) == (1, 2, False)


def test_a_refusal_stands_in_every_later_check_until_a_fixed_rule_certifies_all_batches_since(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead_of_the_gate(monkeypatch, lambda: write_without_gate(shop, 2, monkeypatch))
    shop.specs(bronze_document(expectations=[at_most(1)]))
    assert run(shop, 1).certified_version == 1

    refused = gate(shop)

    assert (refused.outcome, refused.exit_code) == (Outcome.GATE_FAILED, ExitCode.GATE_FAILED)
    assert (refused.version, refused.certified_version, refused.certified_moved) == (2, 1, False)
    assert refused.message == (
        f"bronze.orders version 2 refused: {AT_MOST}(max_value=1) observed 2 (1 at most); readers stay on version 1\n"
        "Fix the data or the rule, then run the table again: `lakehouse run --table bronze.orders --interval "
        "2013-01-01`, or in Airflow clear the task that writes it, with its downstream tasks."
    )
    [check] = refused.checks
    assert (check.passed, check.observed, check.expected) == (False, 2, {"max_value": 1})
    assert shop.run(SILVER, 2).rows.read == 1
    third = run(shop, 3)
    assert (third.outcome, third.version, third.certified_version) == (Outcome.COMMITTED, 3, 1)
    before = verdicts(shop)
    first, second = gate(shop), gate(shop)
    assert "First refused at version 2 (batch main/2)." in first.message
    assert verdicts(shop) == before == [(1, True), (2, False), (3, False)], "a second check records nothing"
    assert first.model_dump(exclude={"timings_s"}) == second.model_dump(exclude={"timings_s"})
    assert shop.run(SILVER, 3).outcome == Outcome.NO_OP

    shop.specs(bronze_document(expectations=[at_most(3)]))
    report, again = gate(shop), gate(shop)
    assert (report.outcome, report.version, report.certified_version) == (Outcome.NO_OP, 3, 3)
    assert (again.outcome, again.certified_version, again.certified_moved) == (Outcome.NO_OP, 3, False)
    [*_, last] = Gates(shop.paths).results(BRONZE)
    assert last.result.batches == ("main/2", "main/3")


def test_a_table_without_a_batch_cannot_be_checked(shop: Lakehouse) -> None:
    report = gate(shop)
    assert (report.outcome, report.exit_code) == (Outcome.NOT_READY, ExitCode.NOT_READY)
    assert "there is no table to check" in report.message


FORTY_DAYS = 40 * 24 * 3600


def let_delta_clean_up(table: Path) -> None:
    """Let all that the log holds be forty days old, and Delta write a checkpoint, after which it cleans up."""
    then = time.time() - FORTY_DAYS
    for file in (table / "_delta_log").iterdir():
        os.utime(file, (then, then))
    with own_session({}) as session:
        session.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
        session.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('aged' = 'yes')")


@pytest.mark.slow
def test_a_certificate_stays_and_a_later_version_is_certified_after_delta_has_cleaned_the_log(
    shop: Lakehouse,
) -> None:
    table = shop.paths.table(BRONZE)
    shop.specs(bronze_document(expectations=[at_most(1)]), silver_document("silver.late"))
    certified = run(shop, 1).version
    assert certified is not None
    assert shop.run(SILVER, 1).outcome is Outcome.COMMITTED
    refused = run(shop, 2)
    assert refused.certified_version == certified
    let_delta_clean_up(table)
    assert not commit_file(table, certified + 1).exists(), "Delta has cleaned its log up"
    assert Gates(shop.paths).certified(BRONZE) == certified
    late = shop.run("silver.late", 1)
    assert late.outcome is Outcome.NOT_READY, "it has never read the certified version"
    assert f"version {certified} of {BRONZE} is certified, but cannot be read any more" in late.message
    still = run(shop, 3)
    assert (still.outcome, still.certified_version) == (Outcome.COMMITTED, certified)
    assert shop.run(SILVER, 3).outcome is Outcome.NO_OP
    shop.specs(bronze_document(expectations=[at_most(9)]))
    right = run(shop, 4)
    assert right.certified_version == right.version == Gates(shop.paths).certified(BRONZE)
    assert shop.run(SILVER, 4).rows.applied == 3, "orders 2 to 4"

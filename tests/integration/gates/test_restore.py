"""`on_refusal: restore`: the rows of a refused version are removed, and its batches are read again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from include.catalog import load_catalog
from include.contracts.job.args import Job
from include.control.gates.gates import Gates
from include.control.gates.overrides import override
from include.control.gates.restore import undo_refused
from include.control.gates.result import GateResult, Override
from include.control.ledger.ledger import Ledger
from include.control.log.batch import Winner
from include.control.log.delta_log import latest_version, read_commit
from include.control.planning.planner import Planner
from include.errors import Outcome, OverrideError, RestoreError
from include.settings import Settings
from spark_jobs.layers.silver.silver import SilverMerge
from tests.support.documents.specs import bronze_document, gold_document
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import day
from tests.support.silver.refusing_gate import (
    BRONZE,
    GOLD,
    SILVER,
    TABLES,
    content,
    content_without_refusal,
    deliver_two_days,
    silver,
)


@pytest.fixture
def shop(refusing: Lakehouse, tmp_path: Path) -> Lakehouse:
    return copy_lakehouse(refusing, tmp_path / "shop")


def test_a_refused_version_is_restored_in_the_same_run(shop: Lakehouse) -> None:
    before = content(shop)
    report = shop.run(SILVER, 2)
    assert (report.outcome, report.version, report.certified_version) == (Outcome.COMMITTED, 2, 3)
    assert report.rows.applied == 4, "the run brought something"
    assert "observed 3 (2 at most); readers stay on version 1\n" in report.message
    assert report.message.endswith("version 3 has the rows of version 1. The next run reads the refused batches again.")
    assert content(shop) == before
    commit = read_commit(shop.paths.table(SILVER), 3)
    assert commit is not None
    assert (commit.operation, commit.txns) == ("RESTORE", {"millrace/silver.orders/main": 3})
    last = Ledger(shop.paths).last_committed(SILVER, commit.metadata["table_id"], "main")
    assert last is not None
    assert last.intent.sources.ranges == {BRONZE: (1, 1)}, "the second day counts as not read"


@pytest.mark.slow
def test_the_next_run_reads_the_refused_batches_as_if_they_were_new(shop: Lakehouse, tmp_path: Path) -> None:
    shop.run(SILVER, 2)
    shop.specs(silver(3))
    reports = shop.run_all(2, SILVER, GOLD)
    assert [report.outcome for report in reports] == [Outcome.COMMITTED] * 2
    assert reports[0].certified_moved
    expected = content_without_refusal(Lakehouse(tmp_path / "plain"))
    assert content(shop) == expected
    assert (expected["deleted"], len(expected["refused"])) == (["o2"], 1)


@pytest.mark.slow
def test_downstream_tables_and_readers_continue_with_the_certified_rows(shop: Lakehouse) -> None:
    before = content(shop)
    shop.run(SILVER, 2)
    assert Gates(shop.paths).certified(SILVER) == 3
    assert shop.run(GOLD, 2).outcome in (Outcome.COMMITTED, Outcome.NO_OP)
    assert content(shop) == before
    assert shop.run(GOLD, 2).outcome == Outcome.NO_OP


@pytest.mark.faults
def test_a_second_run_tries_again_and_is_restored_again(shop: Lakehouse) -> None:
    before = content(shop)
    assert [shop.run(SILVER, 2).version for _ in range(3)] == [2, 4, 6]
    assert content(shop) == before
    assert Gates(shop.paths).certified(SILVER) == 7


@pytest.mark.slow
def test_the_gates_own_job_does_not_take_the_restored_version_for_the_refused_one(shop: Lakehouse) -> None:
    shop.run(SILVER, 2)
    shop.specs(silver(3))
    gate_report = shop.run(SILVER, 2, job=Job.QUALITY_GATE)
    assert gate_report.outcome == Outcome.GATE_FAILED
    assert "Run the task that writes the table" in gate_report.message


@pytest.mark.slow
def test_a_version_is_kept_when_a_newer_commit_exists(shop: Lakehouse) -> None:
    shop.specs(silver(2, on_refusal="keep"))
    refused = shop.run(SILVER, 2)
    assert refused.certified_version == 1
    shop.deliver(3, "c.json", [order(6, 6, of_day=3)])
    shop.run_all(3, BRONZE, SILVER)
    newest = latest_version(shop.paths.table(SILVER))
    with pytest.raises(RestoreError, match=r"silver\.orders: version 2 was not undone: version 3 came after it"):
        restore(shop, 2)
    assert latest_version(shop.paths.table(SILVER)) == newest == 3


@pytest.mark.faults
def test_a_commit_just_before_the_restore_is_never_removed(shop: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.specs(silver(2, on_refusal="keep"))
    shop.run(SILVER, 2)
    ledger = Ledger(shop.paths)
    record = ledger.record_intent

    def overtaken(*args: Any) -> None:
        record(*args)
        shop.run(SILVER, 2, reprocess=True)

    monkeypatch.setattr(ledger, "record_intent", overtaken)
    with pytest.raises(RestoreError, match="another commit came right after it"):
        restore(shop, 2, ledger)
    commit = read_commit(shop.paths.table(SILVER), 3)
    assert commit is not None
    assert commit.operation != "RESTORE"
    assert latest_version(shop.paths.table(SILVER)) == 3


@pytest.mark.faults
def test_a_batch_that_was_planned_before_the_restore_plans_again(shop: Lakehouse) -> None:
    """The restore takes the number for which the batch was planned."""
    shop.specs(silver(2, on_refusal="keep"))
    shop.run(SILVER, 2)
    write = SilverMerge.write
    met: list[int] = []

    def overtaken(self: SilverMerge, session: Any, intent: Any, plan: Any) -> None:
        if not met:
            met.append(intent.batch_seq)
            restore(shop, 2)
        write(self, session, intent, plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SilverMerge, "write", overtaken)
        report = shop.run(SILVER, 2, reprocess=True)
    assert met == [3]
    assert (report.batch_seq, report.attempts) == (4, 2)
    assert [(race.conflict, race.operation, race.version) for race in report.lost_races] == [
        ("ConcurrentTransactionException", "RESTORE", 3)
    ]
    assert shop.rows(SILVER, "order_id") == [("o1",), ("o3",), ("o4",)]


def test_a_version_before_a_restore_cannot_be_overridden(shop: Lakehouse) -> None:
    shop.run(SILVER, 2)
    said = Override(by="ann", reason="a holiday", run_id="manual__2", at=datetime(2013, 1, 5, tzinfo=UTC))
    with pytest.raises(OverrideError, match="version 3 has undone version 2"):
        override(load_catalog(shop.folder / "tables").spec(SILVER), 2, said, shop.paths)


def test_the_first_version_of_a_table_stays_refused(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(), silver(1))
    deliver_two_days(lakehouse)
    _, report = lakehouse.run_all(1, BRONZE, SILVER)
    assert report.message.endswith("was not undone: no version of the table was ever certified.")
    assert len(lakehouse.rows(SILVER, "order_id")) == 2


@pytest.mark.slow
def test_gold_is_restored_too(lakehouse: Lakehouse) -> None:
    few_a_day = {"expect_column_max_to_be_between": {"column": "orders", "max_value": 2}, "action": "fail"}
    lakehouse.specs(bronze_document(), silver(9), gold_document(expectations=[few_a_day], on_refusal="restore"))
    deliver_two_days(lakehouse)
    lakehouse.run_all(1, *TABLES)
    before = lakehouse.rows(GOLD, "day", "orders", "revenue")
    *_, refused = lakehouse.run_all(2, *TABLES)
    assert "version 3 has the rows of version 1" in refused.message
    assert lakehouse.rows(GOLD, "day", "orders", "revenue") == before
    lakehouse.specs(gold_document())
    assert lakehouse.run(GOLD, 2).certified_moved
    assert lakehouse.rows(GOLD, "orders", "revenue") == [(3, 17)]


@pytest.mark.slow
def test_a_batch_with_an_open_refusal_is_not_finished(shop: Lakehouse) -> None:
    shop.specs(silver(2, on_refusal="keep"))
    shop.run(SILVER, 2)
    catalog, settings = load_catalog(shop.folder / "tables"), Settings(root=shop.paths.root)
    assert Planner(catalog, settings).advise(catalog.spec(SILVER), day(2)).nothing_new
    shop.specs(silver(2))
    catalog = load_catalog(shop.folder / "tables")
    advice = Planner(catalog, settings).advise(catalog.spec(SILVER), day(2))
    assert (advice.nothing_new, "still to be completed" in advice.message) == (False, True)
    assert "version 3 has the rows of version 1" in shop.run(SILVER, 2).message


def restore(shop: Lakehouse, version: int, ledger: Ledger | None = None) -> Winner:
    """Undo a refused version."""
    spec, ledger = load_catalog(shop.folder / "tables").spec(SILVER), ledger or Ledger(shop.paths)
    return undo_refused(refusal(shop, version), spec, day(2), "by hand", shop.paths, ledger, Gates(shop.paths))


def refusal(shop: Lakehouse, version: int) -> GateResult:
    [result] = [one.result for one in Gates(shop.paths).results(SILVER) if one.result.version == version]
    assert not result.passed
    return result

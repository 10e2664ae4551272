"""`on_refusal: restore`: the rows of a refused version are removed, and its batches are read again."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.control.gates.gates import Gates
from millrace.control.gates.overrides import override
from millrace.control.gates.result import GateResult, Override
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import Winner
from millrace.control.log.delta_log import latest_version, read_commit
from millrace.control.log.stored_tables import open_table
from millrace.control.maintenance.holding import hold_tables
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.planner import Planner
from millrace.control.repair.restoring import undo_refused
from millrace.errors import ExitCode, Outcome, OverrideError, RestoreError
from millrace.settings import Settings
from millrace_spark.layers.silver.silver import SilverMerge
from tests.support.documents.specs import Document, bronze_document, gold_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import day
from tests.support.silver.refusing_gate import (
    BRONZE,
    GOLD,
    SILVER,
    content,
    load_into_bronze,
    silver,
)


@pytest.fixture
def shop(refusing: Lakehouse, tmp_path: Path) -> Lakehouse:
    return copy_lakehouse(refusing, tmp_path / "shop")


def test_a_refused_version_is_restored_in_the_same_run_and_its_batches_are_read_again(
    shop: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_VIEWS", str(tmp_path / "views"))
    before = content(shop)
    report = shop.run(SILVER, 2)
    assert (report.outcome, report.version, report.certified_version) == (Outcome.COMMITTED, 2, 3)
    assert report.rows.applied == 4, "the run brought something"
    assert "observed 3 (2 at most); readers stay on version 1\n" in report.message
    assert report.message.endswith("version 3 has the rows of version 1. The next run reads the refused batches again.")
    assert content(shop) == before
    views = json.loads((tmp_path / "views" / "certified.json").read_text())
    assert views[SILVER]["version"] == 3, "the views follow the restored rows"
    commit = read_commit(shop.paths.table(SILVER), 3)
    assert commit is not None
    assert (commit.operation, commit.txns) == ("RESTORE", {"millrace/silver.orders/main": 3})
    last = Ledger(shop.paths).last_committed(SILVER, commit.metadata["table_id"], "main")
    assert last is not None
    assert last.intent.sources.ranges == {BRONZE: (1, 1)}, "the second day counts as not read"
    said = Override(by="ann", reason="a holiday", run_id="manual__2", at=datetime(2013, 1, 5, tzinfo=UTC))
    with pytest.raises(OverrideError, match="version 3 has undone version 2"):
        override(load_catalog(shop.folder / "tables").spec(SILVER), 2, said, shop.paths)

    assert shop.run(SILVER, 2).version == 4
    assert content(shop) == before, "a second run tries again, and is restored again"
    assert Gates(shop.paths).certified(SILVER) == 5

    shop.specs(silver(3))
    gate_report = shop.run(SILVER, 2, job=Job.QUALITY_GATE)
    assert gate_report.outcome == Outcome.GATE_FAILED, "the restored version is not taken for the refused one"
    assert "Run the task that writes the table" in gate_report.message
    reports = shop.run_all(2, SILVER, GOLD)
    assert [report.outcome for report in reports] == [Outcome.COMMITTED] * 2
    assert reports[0].certified_moved
    after = content(shop)
    assert shop.rows(SILVER, "order_id", "amount") == [("o1", 10), ("o3", 3), ("o4", 4)]
    assert (after["deleted"], len(after["refused"]), after["groups"]) == (["o2"], 1, [(date(2013, 1, 2), 3, 17)])


def test_a_restore_of_a_held_table_keeps_its_log_though_the_earlier_version_did_not(shop: Lakehouse) -> None:
    ops = OpsTables(shop.paths)
    shop.specs(silver(2, on_refusal="keep"))
    shop.run(SILVER, 2)
    hold_tables("case-17", [SILVER], said_by="ann", why="court order", run_id="test", ops=ops)
    shop.specs(silver(2))
    assert "The table was restored" in shop.run(SILVER, 2, reprocess=True).message
    configuration = open_table(shop.paths.table(SILVER)).metadata().configuration
    assert configuration["delta.enableExpiredLogCleanup"] == "false"


@pytest.mark.faults
def test_a_commit_just_before_the_restore_is_never_removed(shop: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.specs(silver(2, on_refusal="keep"))
    shop.run(SILVER, 2)
    ops = OpsTables(shop.paths)
    record = ops.ledger.record_intent

    def overtaken(*args: Any) -> None:
        record(*args)
        shop.run(SILVER, 2, reprocess=True)

    monkeypatch.setattr(ops.ledger, "record_intent", overtaken)
    with pytest.raises(RestoreError, match="another commit came right after it"):
        restore(shop, 2, ops)
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


def test_the_first_version_of_a_table_stays_refused(lakehouse: Lakehouse) -> None:
    lakehouse.specs(silver(1))
    report = given(lakehouse, SILVER, [order(1, 1), order(2, 2)])
    assert report.message.endswith("was not undone: no version of the table was ever certified.")
    assert len(lakehouse.rows(SILVER, "order_id")) == 2


@pytest.mark.slow
def test_gold_is_restored_too(lakehouse: Lakehouse) -> None:
    few_a_day = {"expect_column_max_to_be_between": {"column": "orders", "max_value": 2}, "action": "fail"}
    lakehouse.specs(gold_document(expectations=[few_a_day], on_refusal="restore"))
    given(lakehouse, SILVER, [order(1, 1), order(2, 2)], 1)
    lakehouse.run(GOLD, 1)
    before = lakehouse.rows(GOLD, "day", "orders", "revenue")
    given(lakehouse, SILVER, [order(3, 3)], 2)
    assert "version 3 has the rows of version 1" in lakehouse.run(GOLD, 2).message
    assert lakehouse.rows(GOLD, "day", "orders", "revenue") == before
    lakehouse.specs(gold_document())
    assert lakehouse.run(GOLD, 2).certified_moved
    assert lakehouse.rows(GOLD, "orders", "revenue") == [(3, 6)]


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


def restore(shop: Lakehouse, version: int, ops: OpsTables | None = None) -> Winner:
    """Undo a refused version."""
    spec = load_catalog(shop.folder / "tables").spec(SILVER)
    return undo_refused(refusal(shop, version), spec, day(2), "by hand", ops or OpsTables(shop.paths))


def refusal(shop: Lakehouse, version: int) -> GateResult:
    [result] = [one.result for one in Gates(shop.paths).results(SILVER) if one.result.version == version]
    assert not result.passed
    return result


HOUR = timedelta(hours=1)


def forgetting(most_rows: int, on_refusal: str = "restore") -> Document:
    retained = {"tombstones": {"retain": "1 hours"}}
    return silver(most_rows, on_refusal=on_refusal, maintenance=retained)


def deleted(shop: Lakehouse) -> object:
    return content(shop)["deleted"]


def vacuum(shop: Lakehouse, at: datetime) -> JobReport:
    report = shop.run(SILVER, 2, Job.TABLE_VACUUM, at, allow_deletes="ann")
    assert report.exit_code is ExitCode.OK, report.message
    return report


@pytest.fixture(scope="module")
def retained(shared: Lakehouse) -> Lakehouse:
    """Two days of orders, the second one in bronze alone; o9 was deleted by the first one, o2 will be."""
    shared.specs(bronze_document(), forgetting(2), gold_document())
    load_into_bronze(shared, 1)
    given(shared, BRONZE, [order(9, 0)], 1)
    assert [report.certified_version for report in shared.run_all(1, SILVER, GOLD)] == [1, 1]
    load_into_bronze(shared, 2)
    assert deleted(shared) == ["o9"]
    return shared


@pytest.fixture
def retaining(retained: Lakehouse, tmp_path: Path) -> Lakehouse:
    """That lakehouse, for one test."""
    return copy_lakehouse(retained, tmp_path / "shop")


@pytest.mark.slow
def test_tombstones_deleted_before_the_refused_version_stay_deleted(retaining: Lakehouse) -> None:
    vacuum(retaining, datetime.now(UTC) + 2 * HOUR)
    before = content(retaining)
    assert before["deleted"] == []
    refused = retaining.run(SILVER, 2)
    assert refused.message.endswith("has the rows of version 1. The next run reads the refused batches again.")
    assert content(retaining) == before
    retaining.specs(forgetting(3))
    assert retaining.run(SILVER, 2).certified_moved
    assert deleted(retaining) == ["o2"]


@pytest.mark.slow
@pytest.mark.faults
def test_tombstones_deleted_after_it_are_restored_and_the_next_vacuum_deletes_them(retaining: Lakehouse) -> None:
    retaining.specs(forgetting(2, on_refusal="keep"))
    between, before = datetime.now(UTC), content(retaining)
    assert retaining.run(SILVER, 2).certified_version == 1
    assert vacuum(retaining, between + HOUR).details["tombstones"]["keys"] == 1
    assert deleted(retaining) == ["o2"], "o9 was forgotten, o2 is too young"

    retaining.specs(forgetting(2))
    assert "version 3 has the rows of version 1" in retaining.run(SILVER, 2).message

    assert content(retaining) == before, "the refused version's own tombstone is gone, the one of before it is there"
    assert vacuum(retaining, between + HOUR).outcome is Outcome.COMMITTED
    assert deleted(retaining) == []
    retaining.specs(forgetting(3))
    reports = retaining.run_all(2, SILVER, GOLD)
    assert [report.outcome for report in reports] == [Outcome.COMMITTED] * 2
    assert retaining.rows(SILVER, "order_id", "amount") == [("o1", 10), ("o3", 3), ("o4", 4)]
    assert deleted(retaining) == ["o2"]

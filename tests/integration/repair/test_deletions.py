"""Batches that delete rows of bronze or silver: the tables that read them follow, and nothing is lost by a crash."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import RowCounts
from millrace.contracts.job.requests import RowFilter
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.states.recent_batches import BatchKind, RecentBatches
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.log.batch import Stream, Winner
from millrace.control.log.delta_log import latest_version, read_commit
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.interrupted import interrupted_repairs
from millrace.errors import Outcome, RepairError
from millrace_spark.layers.repair.deletion import Deletion, delete_where
from millrace_spark.runtime.context import JobContext
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, copy_lakehouse, order
from tests.support.silver.silver_models import tombstones

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")
FILES = {
    1: [order(1, 1), order(2, 2), order(3, -3), order(6, 6)],
    2: [order(1, 10, of_day=2), order(2, 0, of_day=2), order(4, 4, of_day=2), order(5, -5, of_day=2)],
    3: [order(1, 100, of_day=3), order(6, -6, of_day=3)],
}
"""Days: the second changes, deletes and adds keys, and has a refused row; the third changes a key once more."""

AMOUNTS = "amount IN (10, 0, 4, -3, -5, 100)"


@pytest.fixture(scope="module")
def loaded(shared: Lakehouse) -> Lakehouse:
    """A lakehouse with two days, a replayed row, and a third day that is only in bronze."""
    silver = silver_document(apply_as_deletes="amount = 0", expectations=[AT_LEAST_0], max_deleted_percent=100)
    shared.specs(bronze_document(partitioned_by=["day"]), silver, gold_document())
    for number in (1, 2):
        shared.deliver(number, f"{number}.json", FILES[number])
        shared.run_well(number, *TABLES)
    [row] = [row for row in shared.waiting(SILVER) if '"o5"' in row.record]
    shared.replay(SILVER, rows=RowFilter(ids=(row.id,)), assign={"amount": "abs(amount)"})
    shared.run_well(2, GOLD)
    shared.deliver(3, "3.json", FILES[3])
    shared.run_well(3, BRONZE)
    return shared


@pytest.fixture
def shop(loaded: Lakehouse, tmp_path: Path) -> Lakehouse:
    return copy_lakehouse(loaded, tmp_path / "shop")


def delete(shop: Lakehouse, table: str, condition: str, **more: Any) -> Winner:
    context = JobContext(shop.args(table, 2))
    work = Deletion(context, Stream(table), condition, delete_where(condition), "ab12", **more)
    with context.leases.table(table):
        return work.run()


def content(shop: Lakehouse) -> dict[str, object]:
    return {
        "rows": shop.rows(SILVER, "order_id", "amount", "_sequence"),
        "deleted": sorted(tombstones(shop, SILVER)),
        "waiting": sorted(row.record for row in shop.waiting(SILVER)),
        "groups": shop.rows(GOLD, "day", "orders", "revenue"),
    }


class DiedError(BaseException):
    """A driver that died."""


def dying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, whose driver dies right after it."""

    def die(*args: Any, **named: Any) -> Any:
        function(*args, **named)
        raise DiedError

    return die


@pytest.mark.slow
def test_silver_and_gold_follow_a_deletion_in_bronze_as_a_rebuild_does(shop: Lakehouse) -> None:
    before = latest_version(shop.paths.table(BRONZE))
    delete(shop, BRONZE, AMOUNTS)
    assert shop.run(BRONZE, job=Job.QUALITY_GATE).certified_version == latest_version(shop.paths.table(BRONZE))
    shop.run_well(3, SILVER, GOLD)
    followed = content(shop)
    assert [row[:2] for row in shop.rows(SILVER, "order_id", "amount")] == [("o1", 1), ("o2", 2), ("o6", 6)]
    assert followed["deleted"] == []
    assert len(shop.waiting(SILVER)) == 1, "the refused rows that were deleted do not wait any more"
    assert shop.run(BRONZE, 3).outcome is Outcome.NO_OP, "no file is loaded again"
    assert shop.rebuild(SILVER, downstream=True).outcome is Outcome.COMMITTED
    assert content(shop) == followed
    back = {"where": AMOUNTS, "source": f"{BRONZE}@{before}"}
    shop.repair(BRONZE, plan=shop.repair(BRONZE, **back).details["id"], **back)
    shop.run_well(3, SILVER, GOLD)
    followed = content(shop)
    assert shop.rows(SILVER, "order_id", "amount") == [("o1", 100), ("o4", 4), ("o6", 6)], "the rows came back"
    assert shop.rebuild(SILVER, downstream=True).outcome is Outcome.COMMITTED
    assert content(shop) == followed


@pytest.mark.slow
@pytest.mark.faults
def test_gold_follows_a_deletion_in_silver_which_is_made_once_whenever_its_driver_dies(shop: Lakehouse) -> None:
    shop.run_well(3, SILVER, GOLD)
    newest, before = latest_version(shop.paths.table(SILVER)), shop.rows(SILVER, "order_id", "amount")
    with pytest.raises(RepairError, match="came after version 1"):
        delete(shop, SILVER, "amount >= 5", newest=1)
    for owner, name, made in ((Ledger, "record_intent", 0), (Deletion, "write", 1), (Ledger, "record_closed", 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, dying(getattr(owner, name)))
            with pytest.raises(DiedError):
                delete(shop, SILVER, "amount >= 5", newest=newest)
        assert latest_version(shop.paths.table(SILVER)) == newest + made, name
    winner = delete(shop, SILVER, "amount >= 5", newest=newest)
    assert winner.version == newest + 1 == latest_version(shop.paths.table(SILVER))
    assert shop.rows(SILVER, "order_id", "amount") == [row for row in before if row[1] < 5]
    report = shop.run(SILVER, 3)
    assert (report.outcome, report.certified_version) == (Outcome.NO_OP, newest + 1), "the next run checks the version"
    state = TableStates(shop.paths).read(SILVER, RecentBatches)
    assert state is not None
    assert (state.batches[-1].kind, state.batches[-1].rows) == (BatchKind.DELETION, RowCounts(deleted=3))
    shop.run_well(3, GOLD)
    assert shop.run(GOLD, job=Job.TABLE_VERIFY).outcome is Outcome.NO_OP, "as computed from scratch"
    shop.run_well(2, SILVER, reprocess=True)
    assert ("o5", 5) in shop.rows(SILVER, "order_id", "amount"), "the source still has the rows"


@pytest.mark.slow
@pytest.mark.faults
def test_a_repair_drops_a_partition_as_it_was_shown_and_goes_on_after_its_driver_died(shop: Lakehouse) -> None:
    where, newest = "day = '2013-01-02'", latest_version(shop.paths.table(BRONZE))
    shown = shop.repair(BRONZE, where)
    plan = shown.details
    assert (plan["deleted"], plan["found"]["rows"], plan["is_of_partitions"]) == (4, 10, True), shown.message
    [partition] = plan["found"]["partitions"]
    assert (partition["partition"], partition["rows"], partition["whole_files"]) == ({"day": "2013-01-02"}, 4, 1)
    assert (
        plan["command"]
        == f"""lakehouse repair delete {BRONZE} --where 'day = '"'"'2013-01-02'"'"'' --execute {plan["id"]}"""
    )
    assert f"  {SILVER}: follows by its next run" in shown.message
    assert "something else than what" in shop.repair(BRONZE, "day = '2013-01-01'", plan["id"]).message
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Deletion, "write", dying(Deletion.write))
        with pytest.raises(DiedError):
            shop.repair(BRONZE, where, plan["id"])
    [line] = interrupted_repairs(TABLES, OpsTables(shop.paths))
    assert line == f"{BRONZE}: a delete that ann decided was interrupted; it goes on with: {plan['command']} --why ..."
    for outcome in (Outcome.COMMITTED, Outcome.COMMITTED):  # the same command again does nothing more
        done = shop.repair(BRONZE, where, plan["id"])
        assert (done.outcome, done.version, done.certified_version) == (outcome, newest + 1, newest + 1)
        assert (done.rows, len(shop.rows(BRONZE, "amount"))) == (RowCounts(deleted=4), 6)
    ops, commit = OpsTables(shop.paths), read_commit(shop.paths.table(BRONZE), newest + 1)
    assert (ops.repairs.open([BRONZE]), interrupted_repairs(TABLES, ops)) == ([], [])
    assert commit is not None
    assert (commit.added, commit.metadata["sources"]["repair"]["said_by"]) == ((), "ann"), "no file was written"


@pytest.mark.slow
def test_rows_are_replaced_by_those_of_an_earlier_version_or_of_another_table(shop: Lakehouse) -> None:
    newest, before = latest_version(shop.paths.table(SILVER)), shop.rows(SILVER, "order_id", "amount")
    shown = shop.repair(SILVER, "amount >= 5")
    assert shown.details["found"]["samples"] == [{"order_id": "o1"}, {"order_id": "o5"}, {"order_id": "o6"}]
    shop.repair(SILVER, "amount >= 5", shown.details["id"])
    assert len(shop.rows(SILVER, "order_id")) == len(before) - 3
    back = {"where": "amount >= 5", "source": f"{SILVER}@{newest}"}
    shown = shop.repair(SILVER, **back)
    assert (shown.details["deleted"], shown.details["found"]["inserted"]) == (0, 3), shown.message
    done = shop.repair(SILVER, plan=shown.details["id"], **back)
    assert (done.outcome, done.rows) == (Outcome.COMMITTED, RowCounts(read=3, applied=3, inserted=3)), done.message
    assert shop.rows(SILVER, "order_id", "amount") == before
    shop.run_well(3, GOLD)
    assert shop.run(GOLD, job=Job.TABLE_VERIFY).outcome is Outcome.NO_OP, "as computed from scratch"
    shutil.copytree(shop.paths.table(SILVER), shop.paths.table("silver.fixed"))
    outside = shop.repair(SILVER, "amount >= 5", source=f"silver.fixed@{newest}")
    assert outside.message.startswith(f"{SILVER}: 1 row of silver.fixed@{newest} do not fulfil the condition\nSuch as")
    fixed = DeltaTable(str(shop.paths.table("silver.fixed")))
    fixed.delete("amount < 5")
    fixed.update({"order_id": "'o4'"}, predicate="order_id = 'o6'")
    doubled = shop.repair(SILVER, "amount >= 5", source=f"silver.fixed@{fixed.version()}")
    assert doubled.message.startswith(f"{SILVER}: 1 key would be there twice\nSuch as order_id o4."), doubled.message

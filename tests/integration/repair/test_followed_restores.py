"""A restore of bronze or silver: the next runs of the tables that read it do what a rebuild of them would do."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job
from millrace.control.log.batch import Repair
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.restoring import Restore
from millrace.errors import Outcome
from millrace_spark.layers.silver.silver import SilverMerge
from tests.support.change_feeds import require_change_feed
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import day
from tests.support.silver.silver_models import tombstones

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")
FILES = {
    1: [order(1, 1), order(2, 2), order(3, -3), order(6, 6)],
    2: [order(1, 10, of_day=2), order(2, 0, of_day=2), order(4, 4, of_day=2), order(5, -5, of_day=2)],
    3: [order(1, 100, of_day=3), order(6, -6, of_day=3)],
}
"""Days: the second changes, deletes and adds keys, and has a refused row; the third changes a key once more."""


def load(shop: Lakehouse, *days: int) -> None:
    for number in days:
        shop.deliver(number, f"{number}.json", FILES[number])
        assert [report.outcome for report in shop.run_all(number, *TABLES)] == [Outcome.COMMITTED] * 3


def content(shop: Lakehouse) -> dict[str, object]:
    return {
        "rows": shop.rows(SILVER, "order_id", "amount", "_sequence"),
        "deleted": sorted(tombstones(shop, SILVER)),
        "refused": sorted({row["record"] for row in shop.quarantine(SILVER)}),  # once, also after a rebuild
        "groups": shop.rows(GOLD, "day", "orders", "revenue"),
        "bronze": shop.rows(BRONZE, "order_id", "amount"),
    }


def restore(shop: Lakehouse, table: str, target: int, **more: bool) -> None:
    spec, newest = load_catalog(shop.folder / "tables").spec(table), latest_version(shop.paths.table(table))
    repair = Repair(id="ab12", said_by="ann", why="a wrong delivery")
    Restore(spec, target, newest, day(1), f"run {datetime.now(UTC)}", repair=repair, **more).run(OpsTables(shop.paths))


@pytest.fixture(scope="module")
def loaded(shared: Lakehouse) -> tuple[Lakehouse, list[dict[str, object]]]:
    """A lakehouse with three days, and its content after each of them."""
    silver = silver_document(apply_as_deletes="amount = 0", expectations=[AT_LEAST_0])
    shared.specs(bronze_document(), silver, gold_document())
    contents = []
    for number in FILES:
        load(shared, number)
        contents.append(content(shared))
    return shared, contents


def test_all_layers_follow_a_restore_of_bronze_and_load_its_files_again(
    loaded: tuple[Lakehouse, list[dict[str, object]]], tmp_path: Path
) -> None:
    shop, (first, second, third) = copy_lakehouse(loaded[0], tmp_path / "shop"), loaded[1]
    restore(shop, BRONZE, 1)
    for report in shop.run_all(1, SILVER, GOLD):
        assert report.outcome is Outcome.COMMITTED, report.message
    assert content(shop) == first, "as if the two later days had never been delivered"
    assert [report.outcome for report in shop.run_all(2, *TABLES)] == [Outcome.COMMITTED] * 3
    assert content(shop) == second
    assert [report.outcome for report in shop.run_all(3, *TABLES)] == [Outcome.COMMITTED] * 3
    assert content(shop) == third
    assert shop.rebuild(SILVER, downstream=True).outcome is Outcome.COMMITTED
    assert content(shop) == third
    for table in TABLES:
        assert require_change_feed(shop, table) >= 4, "loads, and the restore or what follows it"


@pytest.mark.slow
@pytest.mark.faults
def test_gold_follows_a_restore_of_silver_and_a_batch_planned_before_it_plans_again(
    loaded: tuple[Lakehouse, list[dict[str, object]]], tmp_path: Path
) -> None:
    shop, (first, _, third) = copy_lakehouse(loaded[0], tmp_path / "shop"), loaded[1]
    restore(shop, SILVER, 1)
    gate = shop.run(SILVER, job=Job.QUALITY_GATE)
    assert (gate.outcome, gate.version, gate.certified_version) == (Outcome.NO_OP, 4, 4), "it has a certificate"
    assert shop.run(GOLD).outcome is Outcome.COMMITTED
    assert {**content(shop), "bronze": ()} == {**first, "bronze": ()}
    write, met = SilverMerge.write, list[int]()

    def overtaken(self: SilverMerge, session: Any, intent: Any, plan: Any) -> None:
        if not met:
            met.append(intent.batch_seq)
            restore(shop, SILVER, 2)
        write(self, session, intent, plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SilverMerge, "write", overtaken)
        report = shop.run(SILVER)
    assert (met, report.batch_seq, report.attempts) == ([5], 6, 2)
    assert shop.run(GOLD).outcome is Outcome.COMMITTED
    assert content(shop) == third, "the second day came back, and the third was read again on top of it"


@pytest.mark.slow
def test_the_earlier_content_of_a_replaced_file_comes_back_in_all_layers(lakehouse: Lakehouse) -> None:
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    silver = silver_document(apply_as_deletes="amount = 0", expectations=[AT_LEAST_0])
    lakehouse.specs(bronze_document(source=source), silver, gold_document())
    first, second = [order(1, 1), order(2, 2), order(3, -3)], [order(1, 5), order(4, 4), order(5, -5)]
    contents = []
    for rows in (first, second):
        lakehouse.deliver(1, "a.json", rows)
        assert [report.outcome for report in lakehouse.run_all(1, *TABLES)] == [Outcome.COMMITTED] * 3
        contents.append(content(lakehouse))
    restore(lakehouse, BRONZE, 1, no_reload=True)
    assert [report.outcome for report in lakehouse.run_all(1, SILVER, GOLD)] == [Outcome.COMMITTED] * 2
    assert content(lakehouse) == contents[0]
    assert lakehouse.run(BRONZE).outcome is Outcome.NO_OP, "the new content stays undone"
    restore(lakehouse, BRONZE, 2)
    assert [report.outcome for report in lakehouse.run_all(1, SILVER, GOLD)] == [Outcome.COMMITTED] * 2
    assert content(lakehouse) == contents[1], "the restore was undone"
    restore(lakehouse, BRONZE, 1)
    bronze, *_ = lakehouse.run_all(1, *TABLES)
    assert bronze.outcome is Outcome.COMMITTED, "the new content was loaded again"
    assert content(lakehouse) == contents[1]

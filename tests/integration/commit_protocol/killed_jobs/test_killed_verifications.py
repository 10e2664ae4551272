"""A verification that dies is run again: the wrong version is refused once, and no run in between is in its way."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.contracts.job.args import Job
from include.control.gates.gates import Gates
from include.errors import Outcome
from tests.support.killed_drivers.batches import CleanBatch
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.places import BEFORE_REPORT
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import copy_lakehouse, order

BRONZE, SILVER, GOLD = TABLES = "bronze.orders", "silver.orders", "gold.revenue_daily"


@pytest.mark.faults
@pytest.mark.parametrize("place", [Step.CERTIFICATE, BEFORE_REPORT])
def test_a_killed_verification_is_recorded_once_and_repeated_in_full(
    drivers: Drivers, clean: dict[str, CleanBatch], tmp_path: Path, place: str
) -> None:
    shop = copy_lakehouse(clean[GOLD].before, tmp_path / "shop")
    shop.run(GOLD)
    DeltaTable(str(shop.paths.table(GOLD))).update({"revenue": "99"}, predicate="day = '2013-01-01'")
    shop.deliver(3, "c.json", [order(9, 1, 8, of_day=3)])
    shop.run_all(3, *TABLES)
    certified = Gates(shop.paths).certified(GOLD)
    for _ in range(2):
        ended = drivers.run(shop, GOLD, 3, dies=place, job=Job.TABLE_VERIFY)
        assert (ended.code, ended.report) == (-9, None), ended.output
        wrong = Gates(shop.paths).verdicts(GOLD).found_wrong  # type: ignore[union-attr]
        assert wrong is not None, "the difference was recorded before"
        assert wrong.version == certified
    ended = drivers.run(shop, GOLD, 3, job=Job.TABLE_VERIFY)
    assert ended.report is not None, ended.output
    assert (ended.report.outcome, ended.report.details["differing"]) == (Outcome.GATE_FAILED, 1)
    assert Gates(shop.paths).certified(GOLD) == certified, "readers stay where they are"
    assert len([row for row in Gates(shop.paths).results(GOLD) if row.result.is_verification]) == 1
    whole = shop.run(GOLD, 3, reprocess=True)
    assert whole.certified_moved
    again = drivers.run(shop, GOLD, 3, job=Job.TABLE_VERIFY)
    assert again.report is not None
    assert again.report.outcome is Outcome.NO_OP

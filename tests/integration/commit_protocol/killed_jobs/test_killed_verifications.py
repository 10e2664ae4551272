"""A verification that dies is run again: the wrong version is refused once, and no run in between is in its way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from millrace.contracts.job.args import Job
from millrace.control.gates.gates import Gates
from millrace.errors import Outcome
from tests.support.given import given
from tests.support.killed_drivers.batches import CleanBatch, assert_killed
from tests.support.killed_drivers.drivers import OwnProcess
from tests.support.killed_drivers.places import BEFORE_REPORT
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import copy_lakehouse, order

SILVER, GOLD = "silver.orders", "gold.revenue_daily"


@pytest.mark.slow
def test_a_verification_that_died_is_recorded_once_and_repeated_in_full(
    clean: Callable[[str], CleanBatch], tmp_path: Path
) -> None:
    shop = copy_lakehouse(clean("groups").before, tmp_path / "shop")
    shop.run(GOLD)
    DeltaTable(str(shop.paths.table(GOLD))).update({"revenue": "99"}, predicate="day = '2013-01-01'")
    given(shop, SILVER, [order(9, 1, 8, of_day=3)])
    shop.run(GOLD)
    certified = Gates(shop.paths).certified(GOLD)
    for place in (Step.CERTIFICATE, BEFORE_REPORT):
        assert_killed(OwnProcess().run(shop, GOLD, dies=place, job=Job.TABLE_VERIFY))
        wrong = Gates(shop.paths).verdicts(GOLD).found_wrong  # type: ignore[union-attr]
        assert wrong is not None, "the difference was recorded before"
        assert wrong.version == certified
    report = shop.run(GOLD, job=Job.TABLE_VERIFY)
    assert (report.outcome, report.details["differing"]) == (Outcome.GATE_FAILED, 1)
    assert Gates(shop.paths).certified(GOLD) == certified, "readers stay where they are"
    assert len([row for row in Gates(shop.paths).results(GOLD) if row.result.is_verification]) == 1
    assert shop.run(GOLD, reprocess=True).certified_moved
    assert shop.run(GOLD, job=Job.TABLE_VERIFY).outcome is Outcome.NO_OP

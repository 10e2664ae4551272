"""Drivers die at random places on the way from any landing files to gold; the next ones end what they have left."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from embedded.spark.server import SparkServer
from include.contracts.job.report import JobReport
from include.errors import ExitCode
from tests.support.gold.delivered_shop import STEPS, DeliveredShop
from tests.support.killed_drivers.drivers import DriverEnd, OwnProcess
from tests.support.killed_drivers.places import BEFORE_INTENT, BEFORE_REPORT, NOWHERE, REBUILD_PLACES
from tests.support.killed_drivers.steps import steps_of
from tests.support.lakehouse import Lakehouse

ROUNDS = 4


@dataclass
class KilledShop(DeliveredShop):
    """A shop whose tables are run by drivers of which every third or so dies."""

    def run(self, table: str, day: int = 1) -> JobReport:
        while True:
            end = OwnProcess().run(self.lakehouse, table, day, dies=self._place(BEFORE_INTENT, *steps_of(table)))
            if self._has_ended(end):
                assert end.report is not None
                return end.report

    def run_rebuild(self, table: str) -> None:
        while not self._has_ended(
            OwnProcess().rebuild(self.lakehouse, table, self._place(*REBUILD_PLACES), downstream=True)
        ):
            pass

    def _place(self, *places: str) -> str:
        """Return a place to die at; mostly none."""
        return self.random.choice((*places, BEFORE_REPORT)) if self.random.random() < 0.4 else NOWHERE

    def _has_ended(self, end: DriverEnd) -> bool:
        """Whether a driver was not killed: it came to no such place, and has done what it was asked for."""
        assert end.code in (-signal.SIGKILL, ExitCode.OK), end.output
        self.done["killed"] += end.code != ExitCode.OK
        return end.code == ExitCode.OK


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [5, 6])
def test_after_any_deliveries_and_kills_gold_is_what_models_in_plain_python_say(
    server: SparkServer, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    shop = KilledShop(Lakehouse(tmp_path / "shop"), random, random.choice(("inner", "left")))

    shop.do_all(STEPS, ROUNDS)

    assert set(STEPS) <= set(+shop.done)
    assert shop.done["killed"] > ROUNDS

"""Drivers die at random places on the way from any landing files to gold; the next ones end what they have left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from embedded.spark.server import SparkServer
from include.contracts.job.report import JobReport
from tests.support.gold.delivered_shop import STEPS, DeliveredShop
from tests.support.killed_drivers.batches import succeeded
from tests.support.killed_drivers.drivers import DriverEnd, OwnProcess
from tests.support.killed_drivers.places import BEFORE_INTENT, BEFORE_REPORT, NOWHERE, REBUILD_PLACES
from tests.support.killed_drivers.steps import steps_of
from tests.support.lakehouse import Lakehouse

ROUNDS = 4


class KilledShop(DeliveredShop):
    """A shop whose tables are run by drivers of which every third or so dies."""

    def run(self, table: str, day: int = 1) -> JobReport:
        run = partial(OwnProcess().run, self.lakehouse, table, day)
        return self._run_until_it_ends(run, BEFORE_INTENT, *steps_of(table))

    def run_rebuild(self, table: str) -> None:
        run = partial(OwnProcess().rebuild, self.lakehouse, table, downstream=True)
        self._run_until_it_ends(run, *REBUILD_PLACES)

    def _run_until_it_ends(self, run: Callable[..., DriverEnd], *places: str) -> JobReport:
        while True:
            dies = self.random.choice((*places, BEFORE_REPORT)) if self.random.random() < 0.4 else NOWHERE
            end = run(dies=dies)
            if end.code >= 0:  # it came to no such place, and has done what it was asked for
                return succeeded(end)
            self.done["killed"] += 1


@pytest.mark.faults
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

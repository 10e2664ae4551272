"""Drivers that compute gold tables of every kind die at random places; after a plain run each is right again."""

from __future__ import annotations

import signal
from pathlib import Path
from random import Random

import pytest

from tests.support.gold.changing_sources import COLUMNS, Shop
from tests.support.gold.random_specs import KINDS_OF_GOLD, WITH_GOLD
from tests.support.killed_drivers.batches import run_successfully
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.places import BEFORE_INTENT, BEFORE_REPORT, NOWHERE
from tests.support.killed_drivers.steps import steps_of
from tests.support.lakehouse import Lakehouse

ROUNDS = 4
PLACES = (BEFORE_INTENT, *steps_of("gold.any"), BEFORE_REPORT)


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(1, 5))
def test_after_any_changes_and_kills_gold_is_what_a_computation_from_scratch_gives(
    drivers: Drivers, tmp_path: Path, seed: int
) -> None:
    random, ends = Random(seed), list[int]()
    kinds = (*KINDS_OF_GOLD[seed - 1 :: 4], *(WITH_GOLD[:2] if seed % 2 else WITH_GOLD[2:]))
    shop = Shop(Lakehouse(tmp_path / "shop"), random, kinds)
    shop.fill()
    for _ in range(ROUNDS):
        shop.sources.certify()
        for table in shop.queries:
            # A second driver may die while it ends what the first one has left.
            while (place := random.choice((NOWHERE, *PLACES))) != NOWHERE:
                ends.append(drivers.run(shop.lakehouse, table, 1, dies=place).code)
            run_successfully(drivers, shop.lakehouse, table)
        for table in shop.queries:
            assert shop.rows(table) == shop.from_scratch(table), (table, shop.queries[table])
        for table in random.sample(list(COLUMNS), 2):
            shop.change(table)
    assert set(ends) <= {-signal.SIGKILL, 0}, "a driver that finds nothing to do comes to no place"
    assert ends.count(-signal.SIGKILL) > ROUNDS

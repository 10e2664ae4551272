"""Anything happens to a lakehouse, in any order, while drivers die: it has what a model in plain Python says.

A seed repeats its steps; a failure lists them.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.support.any_change.changing_shop import ChangingShop
from tests.support.killed_drivers.drivers import Drivers, OwnProcess
from tests.support.lakehouse import Lakehouse

STEPS_OF_EACH = 50


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(1, 7))
def test_whatever_happens_each_table_has_what_a_model_in_plain_python_says(
    drivers: Drivers, tmp_path: Path, seed: int
) -> None:
    shop = ChangingShop(Lakehouse(tmp_path), [OwnProcess(), drivers], Random(seed))

    shop.do(STEPS_OF_EACH)

    assert shop.done["killed"] > STEPS_OF_EACH / 10, shop.done

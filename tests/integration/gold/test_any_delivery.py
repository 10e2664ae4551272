"""Gold by Millrace's own jobs from landing files: after any deliveries, it is what models in plain Python say."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.gold.delivered_shop import DELIVERIES, FATES, STEPS, DeliveredShop
from tests.support.gold.modelled_gold import TABLES
from tests.support.lakehouse import Lakehouse

QUICK = (*DELIVERIES, "restore", "rebuild")
SEEN = {*FATES, *TABLES}
"""What must have happened to rows of silver, and of which gold tables a part must have been computed."""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("seed", "steps", "rounds"),
    [pytest.param(1, QUICK, 2, marks=pytest.mark.slow), pytest.param(5, STEPS, 4, marks=pytest.mark.faults)],
)
def test_after_any_deliveries_and_rebuilds_gold_is_what_models_in_plain_python_say(
    lakehouse: Lakehouse, seed: int, steps: tuple[str, ...], rounds: int
) -> None:
    random = Random(seed)
    shop = DeliveredShop(lakehouse, random, random.choice(("inner", "left")))

    shop.do_all(steps, rounds)

    assert {*steps, *SEEN} <= set(+shop.done), shop.done

"""Gold by Millrace's own jobs from landing files: after any deliveries, it is what models in plain Python say.

The tests of killed drivers do the same, with every step, while drivers die.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.support.gold.delivered_shop import DELIVERIES, FATES, DeliveredShop
from tests.support.gold.modelled_gold import TABLES
from tests.support.lakehouse import Lakehouse

QUICK = (*DELIVERIES, "rebuild")
SEEN = {*FATES, *TABLES}
"""What must have happened to rows of silver, and of which gold tables a part must have been computed."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_after_any_deliveries_and_rebuilds_gold_is_what_models_in_plain_python_say(lakehouse: Lakehouse) -> None:
    random = Random(1)
    shop = DeliveredShop(lakehouse, random, random.choice(("inner", "left")))

    shop.do_all(QUICK, rounds=2)

    assert {*QUICK, *SEEN} <= set(+shop.done), shop.done

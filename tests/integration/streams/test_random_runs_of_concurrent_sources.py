"""Any order of deliveries and runs of two sources, while the silver table gets and loses its streams."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from embedded.spark.server import SparkServer
from millrace.control.log.batch import ONE_STREAM
from millrace.errors import Outcome
from tests.support.lakehouse import Lakehouse
from tests.support.silver.source_reads import intents, require_read_once
from tests.support.silver.two_shops import BRANCH, BY_SHOP, SILVER, WEB, TwoShops, two_shops

pytestmark = pytest.mark.slow

SEEN = ("refused", "replaced", "deleted", "reprocessed", "divided", "united", Outcome.COMMITTED)
"""What a random sequence of steps must have had to prove anything."""


class DividedShops(TwoShops):
    """Two shops whose table sometimes has a stream for each of them."""

    is_divided = False

    def change(self) -> None:
        """Write the spec with or without `concurrent_by`; the next run follows it."""
        self.is_divided = not self.is_divided
        scd = {"stored_as_scd_type": 2 if self.has_history else 1}
        self.shop.specs(*two_shops(concurrent=self.is_divided, **BY_SHOP, **scd))

    def merge_some(self) -> None:
        """Merge what is loaded, perhaps with a day of it again."""
        reprocess = self.chance.random() < 0.2
        if self.merge(reprocess=reprocess):
            self.done["reprocessed"] += reprocess
            names = {intent.stream for intent in intents(self.shop, SILVER)} - {ONE_STREAM}
            self.done["divided"] += self.is_divided
            self.done["united"] += bool(names) and not self.is_divided


@pytest.mark.parametrize(
    ("scd_type", "seed"),
    [(1, 1), pytest.param(2, 2, marks=pytest.mark.faults)],
)
def test_any_order_of_deliveries_runs_and_changes_of_the_streams_ends_in_the_right_rows(
    tmp_path: Path, server: SparkServer, scd_type: int, seed: int
) -> None:
    run = DividedShops(Lakehouse(tmp_path), Random(seed), by_shop=True, has_history=scd_type == 2)
    run.change()
    for _ in range(4):
        run.deliver()
    run.load_all()
    for number in range(60):
        steps = [run.deliver, run.replace, run.load, run.merge_some, run.change]
        run.chance.choices(steps, [2, 2, 4, 5, 1])[0]()
        if number >= 12 and all(run.done[step] for step in SEEN):
            break
    run.load_all()
    run.merge()
    assert {row[-1] for row in run.right_rows()} == {WEB, BRANCH}
    assert all(run.done[step] for step in SEEN), run.done
    assert run.shop.run(SILVER).outcome is Outcome.NO_OP
    require_read_once(run.shop, SILVER, (WEB, BRANCH))

"""Gold tables of every kind on real Delta: after any changes, each has the rows that DuckDB computes from scratch."""

from __future__ import annotations

from random import Random

import pytest

from include.contracts.job.args import Job
from include.control.planning import refresh_cost
from include.errors import Outcome
from spark_jobs.runtime.session import own_session
from tests.support.gold.changing_sources import COLUMNS, Shop
from tests.support.gold.random_specs import KINDS_OF_GOLD, WITH_GOLD
from tests.support.lakehouse import Lakehouse

ROUNDS = 5
QUICK = (17, 18)
"""Seeds with different kinds of tables."""


@pytest.mark.parametrize("seed", [*QUICK, *(pytest.param(seed, marks=pytest.mark.faults) for seed in range(17))])
def test_after_any_changes_gold_is_what_a_computation_from_scratch_gives(
    lakehouse: Lakehouse, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, limits, kept = Random(seed), Random(seed), 0
    with own_session({}) as session:
        kinds = (*random.sample(KINDS_OF_GOLD, 3), *(WITH_GOLD[:2] if seed % 2 else WITH_GOLD[2:]))
        shop = Shop(lakehouse, session, random, kinds)
        shop.fill()
        for _ in range(ROUNDS):
            # Sometimes there are more touched values than are listed, so that ranges of them are computed.
            monkeypatch.setattr(refresh_cost, "MOST_LISTED", limits.choice((1, 2, 1_000)))
            computed = shop.run()
            for table in shop.queries:
                rows = shop.rows(table)
                assert rows == shop.from_scratch(table), (table, shop.queries[table])
                kept += 0 < computed[table] < len(rows)
            for table in random.sample(list(COLUMNS), random.choice((1, 1, 2, 3))):
                shop.change(table)
            if random.random() < 0.5:
                shop.change_gold(random.choice(list(shop.queries)))
        for table in random.sample(list(shop.queries), 2):
            report = lakehouse.run(table, job=Job.TABLE_VERIFY)
            assert (report.outcome, report.details["differing"]) == (Outcome.NO_OP, 0), report.message
    assert kept, "some runs compute a part of a table"

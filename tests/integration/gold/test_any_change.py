"""Gold tables of every kind on real Delta: after any changes, each has the rows that DuckDB computes from scratch."""

from __future__ import annotations

from random import Random

import pytest

from millrace.control.planning import refresh_cost
from tests.support.gold.changing_sources import COLUMNS, Shop
from tests.support.gold.random_specs import KINDS_OF_GOLD, WITH_GOLD
from tests.support.lakehouse import Lakehouse

SEEDS = [
    (17, 1, 2),
    pytest.param(18, 3, 4, marks=pytest.mark.slow),
    *(pytest.param(seed, 3, 6, marks=pytest.mark.faults) for seed in range(6)),
]
"""Seed, number of kinds of tables beside gold on gold, and of rounds; the last but one makes a little change."""

UNTRACED = {"gold.windows_of_time"}
"""Sliding windows and sessions are always computed whole."""


@pytest.mark.parametrize(("seed", "kinds_of_silver", "rounds"), SEEDS)
def test_after_any_changes_gold_is_what_a_computation_from_scratch_gives(
    lakehouse: Lakehouse, seed: int, kinds_of_silver: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, limits = Random(seed), Random(seed)
    kinds = (*random.sample(KINDS_OF_GOLD, kinds_of_silver), *(WITH_GOLD[:2] if seed % 2 else WITH_GOLD[2:]))
    shop = Shop(lakehouse, random, kinds)
    shop.fill()
    for number in range(rounds):
        # Sometimes there are more touched values than are listed, so that ranges of them are computed.
        monkeypatch.setattr(refresh_cost, "MOST_LISTED", limits.choice((1, 2, 1_000)))
        # And sometimes a table is not small, so that it is computed whole where that is cheaper.
        monkeypatch.setattr(refresh_cost, "SMALL", limits.choice((0, 4_000_000)) if number < rounds - 2 else 4_000_000)
        computed = shop.run()
        for table in shop.queries:
            assert shop.rows(table) == shop.from_scratch(table), (table, shop.queries[table])
        if number == rounds - 2:
            shop.change_little()
        elif number < rounds - 2:
            for table in random.sample(list(COLUMNS), random.choice((1, 1, 2, 3))):
                shop.change(table)
            if random.random() < 0.5:
                shop.change_gold(random.choice(list(shop.queries)))
    for table in shop.queries.keys() - UNTRACED:
        assert 0 < computed[table] < len(shop.rows(table)), f"{table}: a little change computes a part"

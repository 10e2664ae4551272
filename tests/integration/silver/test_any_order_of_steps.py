"""Events delivered, corrected, loaded, merged, restored in any order: silver is what a model says, after every merge.

A file holds some hundred events of sixty keys that have nothing to do with one another, so that each step is an example
of sixty histories.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from embedded.spark.server import SparkServer
from tests.support.change_feeds import require_change_feed
from tests.support.lakehouse import Lakehouse
from tests.support.silver.orders import some_events, some_truncates, with_hashes
from tests.support.silver.silver_machine import BRONZE, Line, SilverMachine
from tests.support.silver.silver_models import DELETES, History, LastStates

STEPS = 30
LAST = {**DELETES, "sequence_by": ["event_at", "event_seq"]}
PERIODS = {
    **DELETES,
    "sequence_by": ["event_at"],
    "stored_as_scd_type": 2,
    "track_history_column_list": ["amount"],
    "except_column_list": ["event_at", "event_seq"],
}
"""A delete or a state for each hour; only the amount begins a period."""

TABLES = {
    "last states": [
        LastStates("silver.last_states", {**LAST, "apply_as_truncates": "op = 'truncate'"}),
        LastStates("silver.filled_states", {**LAST, "ignore_null_updates": True}),
    ],
    "histories": [
        History("silver.histories", PERIODS),
        History("silver.filled_histories", {**PERIODS, "ignore_null_updates": True}),
    ],
}


@pytest.mark.faults
@pytest.mark.parametrize("tables", TABLES.values(), ids=TABLES)
@pytest.mark.timeout(1800)
def test_any_order_of_deliveries_and_runs_ends_in_what_a_model_of_dicts_says(
    tmp_path: Path, server: SparkServer, tables: list[LastStates] | list[History]
) -> None:
    chance = Random(2013)
    hashed = with_hashes([*some_events(chance, of_each_key=25), *some_truncates(chance, 40)])
    events, truncates = hashed[:-40], hashed[-40:]

    def content(chance: Random) -> list[Line]:
        """Return events that come early, late, twice and tied, truncates, and broken lines."""
        lines: list[Line] = [
            *chance.choices(events, k=chance.randint(40, 120)),
            *chance.sample(truncates, chance.randint(0, 2)),
        ]
        return [*lines, *(f"{{broken {number}" for number in range(chance.randrange(3)))]

    machine = SilverMachine(Lakehouse(tmp_path), tables, content, chance)
    machine.run(STEPS)

    assert all(len(table.known_keys) > 50 and table.rows and table.refused for table in tables)
    assert all(table.deletes for table in tables)
    for table in (BRONZE, *(table.table for table in tables)):
        assert require_change_feed(machine.shop, table) > 1

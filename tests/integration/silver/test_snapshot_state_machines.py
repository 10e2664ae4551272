"""Full snapshots delivered, torn, corrected, loaded and merged in any order: silver is what models of dicts say.

Three lakehouses with two tables of sixty keys: more than 300 histories, each looked at after every merge.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from embedded.spark.server import SparkServer
from tests.support.silver.machine_runs import run_machines
from tests.support.silver.orders import OrderRow, some_states, with_hashes
from tests.support.silver.silver_machine import Line
from tests.support.silver.silver_models import SilverModel, SnapshotHistory, SnapshotStates

pytestmark = pytest.mark.faults

STATED = {"snapshot": "full", "sequence_by": [], "except_column_list": ["event_at", "event_seq"]}
PERIODS = {**STATED, "stored_as_scd_type": 2, "track_history_column_list": ["amount"]}


def tables() -> list[SilverModel]:
    """The newest snapshot, and the periods between all of them."""
    return [SnapshotStates("silver.newest", STATED), SnapshotHistory("silver.histories", PERIODS)]


@pytest.fixture(scope="module")
def pool(server: SparkServer) -> list[OrderRow]:
    """States of which each snapshot holds some; of a key it may hold several, or none."""
    return with_hashes(some_states(Random(2013), of_each_key=6))


@pytest.mark.timeout(900)
def test_snapshots_in_any_order_end_in_what_a_model_of_dicts_says(pool: list[OrderRow], tmp_path: Path) -> None:
    def content(chance: Random) -> list[Line]:
        return [*chance.choices(pool, k=chance.choice([0, 60, 90])), *(["{broken"] if chance.random() < 0.3 else [])]

    run_machines(tmp_path, tables, content, seed=9, examples=3, steps=12, histories=300)

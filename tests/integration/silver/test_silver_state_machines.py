"""Events delivered, corrected, loaded and merged in any order: silver is what a model of dicts says, after every merge.

A file holds some hundred events of sixty keys that have nothing to do with one another, so that each step is an example
of sixty histories: a test of four lakehouses with two tables comes to more than 400, each looked at after every merge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from embedded.spark.server import SparkServer
from tests.support.lakehouse import Lakehouse
from tests.support.silver.orders import OrderRow, some_events, some_truncates, with_hashes
from tests.support.silver.silver_machine import RULES, Content, Line, SilverMachine
from tests.support.silver.silver_models import DELETES, History, LastStates, SilverModel

pytestmark = pytest.mark.faults

LAST = {**DELETES, "sequence_by": ["event_at", "event_seq"]}
PERIODS = {
    **DELETES,
    "sequence_by": ["event_at"],
    "stored_as_scd_type": 2,
    "track_history_column_list": ["amount"],
    "except_column_list": ["event_at", "event_seq"],
}
"""A delete or a state for each hour; only the amount begins a period."""


def last_states() -> list[SilverModel]:
    """Tables that keep the last state: with truncates, and with nulls that leave a value as it was."""
    return [
        LastStates("silver.last_states", {**LAST, "apply_as_truncates": "op = 'truncate'"}),
        LastStates("silver.filled_states", {**LAST, "ignore_null_updates": True}),
    ]


def histories() -> list[SilverModel]:
    """Tables that keep every state, likewise without truncates."""
    return [
        History("silver.histories", PERIODS),
        History("silver.filled_histories", {**PERIODS, "ignore_null_updates": True}),
    ]


HISTORIES = 400
FEW_STEPS = settings(
    max_examples=3,
    stateful_step_count=12,
    phases=[Phase.generate],  # no shrinking: each try of a shorter example would cost as much again
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def pool(server: SparkServer) -> tuple[list[OrderRow], list[OrderRow]]:
    """Events of which each file holds some, so that they come early, late, twice and tied; and truncates."""
    chance = Random(2013)
    events, truncates = some_events(chance, of_each_key=25), some_truncates(chance, 40)
    hashed = with_hashes([*events, *truncates])
    return hashed[: len(events)], hashed[len(events) :]


@pytest.mark.parametrize(("tables", "seed"), [(last_states, 89), (histories, 22)])
@pytest.mark.timeout(1800)
def test_any_order_of_deliveries_and_runs_ends_in_what_a_model_of_dicts_says(
    pool: tuple[list[OrderRow], list[OrderRow]], tmp_path: Path, tables: Callable[[], list[SilverModel]], seed: int
) -> None:
    events, truncates = pool

    def content(chance: Random) -> list[Line]:
        lines: list[Line] = [
            *chance.choices(events, k=chance.randint(40, 120)),
            *chance.sample(truncates, chance.randint(0, 2)),
        ]
        return [*lines, *(f"{{broken {number}" for number in range(chance.randrange(3)))]

    ran: list[SilverMachine] = []
    for number in range(3):  # until each rule has run, and the tables have had 400 keys together
        ran += run_some(tmp_path / str(number), tables, content, seed + number)
        done = sum((machine.done for machine in ran), Counter[str]())
        if set(+done) >= RULES and sum(machine.histories() for machine in ran) >= HISTORIES:
            return
    pytest.fail(f"only these rules: {done}")


def run_some(folder: Path, tables: Callable[[], list[SilverModel]], content: Content, seed: int) -> list[SilverMachine]:
    """Run machines, each in its own lakehouse, and bring each of them to its end."""
    machines: list[SilverMachine] = []

    @seeded(seed)
    def machine() -> SilverMachine:
        machines.append(SilverMachine(Lakehouse(folder / str(len(machines))), tables(), content))
        return machines[-1]

    run_state_machine_as_test(machine, settings=FEW_STEPS)
    ran = [machine for machine in machines if machine.landing]
    for finished in ran:
        finished.finish()
    return ran

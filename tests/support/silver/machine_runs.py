"""Run silver's state machines until every rule has run, and compare each with its models at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from tests.support.lakehouse import Lakehouse
from tests.support.silver.silver_machine import RULES, Content, SilverMachine
from tests.support.silver.silver_models import SilverModel


def run_machines(
    folder: Path,
    tables: Callable[[], list[SilverModel]],
    content: Content,
    *,
    seed: int,
    examples: int,
    steps: int,
    histories: int,
) -> None:
    """Run examples, each in its own lakehouse below `folder`, and bring each of them to its end.

    Repeat that up to three times, until each rule has run and the tables have had `histories` keys together.
    """
    ran: list[SilverMachine] = []
    for number in range(3):
        ran += _run_some(folder / str(number), tables, content, _settings(examples, steps), seed + number)
        done = sum((machine.done for machine in ran), Counter[str]())
        keys = sum(machine.histories() for machine in ran)
        if (
            set(+done) >= RULES | ({"break_file", "fix_file"} if tables()[0].is_snapshot else set())
            and keys >= histories
        ):
            return
    pytest.fail(f"only {keys} key histories, and these rules: {done}")


def _run_some(
    folder: Path, tables: Callable[[], list[SilverModel]], content: Content, examples: settings, seed: int
) -> list[SilverMachine]:
    machines: list[SilverMachine] = []

    @seeded(seed)
    def machine() -> SilverMachine:
        machines.append(SilverMachine(Lakehouse(folder / str(len(machines))), tables(), content))
        return machines[-1]

    run_state_machine_as_test(machine, settings=examples)
    ran = [machine for machine in machines if machine.landing]
    for finished in ran:
        finished.finish()
    return ran


def _settings(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=[Phase.generate],  # no shrinking: each try of a shorter example would cost as much again
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )

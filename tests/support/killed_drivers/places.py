"""Where a driver can be made to die: right after each step of the protocol, and while the server still writes.

The production code knows nothing of this: a driver that is to die wraps the step's own function before it begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from include.control.gates import Gates
from include.control.ledger import Ledger
from spark_jobs.delta_io import quarantine
from spark_jobs.layers import bronze, gold, silver
from tests.support.killed_drivers.steps import Step

NOWHERE = "nowhere"
BEFORE_INTENT = "before the intent"
IN_THE_WRITE = "while the server writes"
SLOW_WRITE_S = 4
"""How long the server works on a write during which the driver dies, beyond what it takes anyway."""
SLOW_ORDER = "o1"
"""The order whose row takes so long."""

Die = Callable[[], object]
Condition = Callable[..., bool]


def set_up(place: str, die: Die) -> None:
    """See to it that `die` is called when the job comes to `place`."""
    if place == BEFORE_INTENT:
        _before(Ledger, "record_intent", die)
    elif place == IN_THE_WRITE:
        _slow_down_the_write(die)
    elif place != NOWHERE:
        _AFTER[Step(place)](die)


def _after(owner: Any, name: str, die: Die, when: Condition = lambda *_: True) -> None:
    inner = getattr(owner, name)

    def and_die(*args: Any) -> Any:
        result = inner(*args)
        if when(*args):
            die()
        return result

    setattr(owner, name, and_die)


def _before(owner: Any, name: str, die: Die) -> None:
    setattr(owner, name, lambda *_: die())


def _after_the_write(die: Die) -> None:
    _after(bronze.BronzeIngest, "write", die)
    _after(silver.SilverMerge, "write", die)
    _after(gold.GoldAggregate, "write", die)


def _after_secondary(kind: str) -> Callable[[Die], None]:
    def patch(die: Die) -> None:
        for module in (quarantine, silver):
            _after(module, "write_once", die, lambda _, table, *more: kind in table.name)

    return patch


def _slow_down_the_write(die: Die) -> None:
    """The frame that is appended or merged takes its time on the server; meanwhile the driver dies."""
    append, merge = bronze.append, silver.merge_changes

    def slowed(frame: DataFrame) -> DataFrame:
        threading.Timer(SLOW_WRITE_S / 2, die).start()
        wait = f"reflect('java.lang.Thread', 'sleep', {SLOW_WRITE_S * 1000}L) = 'null'"
        return frame.where(f"CASE WHEN order_id = '{SLOW_ORDER}' THEN {wait} ELSE true END")

    bronze.append = lambda rows, path: append(slowed(rows), path)
    silver.merge_changes = lambda session, path, changes, *more: merge(session, path, slowed(changes), *more)


_AFTER: dict[Step, Callable[[Die], None]] = {
    Step.INTENT: lambda die: _after(Ledger, "record_intent", die),
    Step.COMMIT: _after_the_write,
    Step.RECORDED: lambda die: _after(Ledger, "record_committed", die, lambda _, winners: bool(winners)),
    Step.QUARANTINE: _after_secondary("_quarantine."),
    Step.TOMBSTONES: _after_secondary("_tombstones."),
    Step.CLOSED: lambda die: _after(Ledger, "record_closed", die),
    Step.CERTIFICATE: lambda die: _after(Gates, "record", die),
}

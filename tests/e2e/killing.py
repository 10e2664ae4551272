"""Killing a task half way in a real Airflow, and clearing it."""

from __future__ import annotations

from dataclasses import dataclass

from deltalake.exceptions import TableNotFoundError

from embedded.airflow.api import AirflowApi, Run, Task
from embedded.stack import Stack
from include.control.log.stored_tables import open_table
from include.paths import LakehousePaths
from include.settings import Settings
from tests.e2e.days import PATIENCE_S
from tests.e2e.waiting import drivers, wait_for


@dataclass(frozen=True)
class KilledAndCleared:
    """A run by hand, one task of which was killed half way and then cleared.

    Attributes:
        killed: the task as it ran.
        ended: the run, once it had failed for that.
        cleared: the task after the clear.
        run: the run at its end.
    """

    killed: Task
    ended: Run
    cleared: Task
    run: Run


def kill_and_clear(api: AirflowApi, stack: Stack, settings: Settings, run: Run, table: str) -> KilledAndCleared:
    """Let the task that writes `table` die after its intent, wait for the run to fail, clear the task, and wait."""
    driver = wait_for(lambda: drivers(stack.home, table))[0]
    wait_for(lambda: count_intents(settings, table))
    driver.suspend()  # or it might end well before Airflow hears of it
    killed = api.task(run, table)
    api.mark_failed(killed)
    wait_for(lambda: not drivers(stack.home, table), patience_s=30)
    ended = api.wait_for_run(run, PATIENCE_S)
    api.clear(run, table)
    run = api.wait_for_run(run, PATIENCE_S)
    return KilledAndCleared(killed, ended, api.task(run, table), run)


def count_intents(settings: Settings, table: str) -> int:
    """How many batches of a table the ledger knows to have been begun."""
    try:
        batches = open_table(LakehousePaths(settings.root).ops("batches"))
    except TableNotFoundError:
        return 0
    return batches.to_pyarrow_table(columns=["table"])["table"].to_pylist().count(table)

"""Waiting for what a running stack does, and finding the drivers and the batches of its jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psutil
from deltalake.exceptions import TableNotFoundError

from embedded.airflow.api import RUN_END_STATES, AirflowApi, Run
from embedded.home import Home
from embedded.stack_processes import of_stack
from millrace.control.log.stored_tables import open_table
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.e2e.days import PATIENCE_S

Seen = TypeVar("Seen")


def wait_for(look: Callable[[], Seen], patience_s: float = 300, every_s: float = 0.25) -> Seen:
    """What `look` gives as soon as that is not empty, false or None."""
    deadline = time.monotonic() + patience_s
    while not (seen := look()):
        if time.monotonic() > deadline:
            msg = f"waited {patience_s:.0f} s in vain for {look.__qualname__}"
            raise TimeoutError(msg)
        time.sleep(every_s)
    return seen


def ended(api: AirflowApi, run: Run) -> Run:
    """A run once it has ended. It is asked for little, and not often: each answer costs Airflow's server CPU."""
    wait_for(lambda: api.run(run).state in RUN_END_STATES, PATIENCE_S, every_s=1)
    return api.run(run)


def drivers(home: Home, table: str) -> list[psutil.Process]:
    """The living drivers of a table's jobs."""
    return [process for process in of_stack(home) if _is_driver(process, table)]


def count_intents(settings: Settings, table: str) -> int:
    """How many batches of a table the ledger knows to have been begun."""
    try:
        batches = open_table(LakehousePaths(settings.root).ops("batches"))
    except TableNotFoundError:
        return 0
    return batches.to_pyarrow_table(columns=["table"])["table"].to_pylist().count(table)


def _is_driver(process: psutil.Process, table: str) -> bool:
    try:
        # The title of a process that is a fork is one text.
        command = " ".join(process.cmdline()).split()
    except psutil.NoSuchProcess:
        return False
    return f"--table={table}" in command and any(part.endswith(".py") and "spark_jobs" in part for part in command)

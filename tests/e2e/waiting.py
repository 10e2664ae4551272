"""Waiting for what a running stack does, and finding the drivers of its jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psutil

from embedded.home import Home
from embedded.stack_processes import of_stack

Seen = TypeVar("Seen")


def wait_for(look: Callable[[], Seen], patience_s: float = 300) -> Seen:
    """What `look` gives as soon as that is not empty, false or None."""
    deadline = time.monotonic() + patience_s
    while not (seen := look()):
        if time.monotonic() > deadline:
            msg = f"waited {patience_s:.0f} s in vain for {look.__qualname__}"
            raise TimeoutError(msg)
        time.sleep(0.25)
    return seen


def drivers(home: Home, table: str) -> list[psutil.Process]:
    """The living drivers of a table's jobs."""
    return [process for process in of_stack(home) if _is_driver(process, table)]


def _is_driver(process: psutil.Process, table: str) -> bool:
    try:
        # The title of a process that is a fork is one text.
        command = " ".join(process.cmdline()).split()
    except psutil.NoSuchProcess:
        return False
    return f"--table={table}" in command and any(part.endswith(".py") and "spark_jobs" in part for part in command)

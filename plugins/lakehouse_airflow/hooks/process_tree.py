"""Ending a process with all that it started."""

from __future__ import annotations

import time
from contextlib import suppress

import psutil

GRACE_S = 4.0
"""Seconds between TERM and KILL: Airflow's supervisor kills the task itself after five."""

_LOOK_EVERY_S = 0.05


def end_tree(pid: int, grace_s: float = GRACE_S) -> int:
    """End process `pid` and its descendants: TERM, so that they can clean up, then KILL for what is left.

    Nothing is reaped here, so the parent still learns how its child ended.

    Returns:
        How many processes were running.
    """
    tree = _tree(pid)
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    left = _wait(tree, grace_s)
    # What was started while the others were ending belongs to them too.
    for process in {one for parent in left for one in _tree(parent.pid)}:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return len(tree)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [one for one in (root, *root.children(recursive=True)) if _runs(one)]
    except psutil.NoSuchProcess:
        return []


def _wait(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those of `processes` that still run after `seconds`."""
    deadline = time.monotonic() + seconds
    while (left := [one for one in processes if _runs(one)]) and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY_S)
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

"""End processes: ask them first, then kill what is left."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import psutil

_POLL_S = 0.05
_KILL_S = 5.0


def end_processes(processes: Sequence[psutil.Process], grace_s: float, by: signal.Signals = signal.SIGTERM) -> int:
    """Send `by` to the processes, and kill those that still run after `grace_s` seconds.

    No process is reaped here, so that a parent still learns how its child ended; a zombie counts as ended.

    Returns:
        The number of processes that had to be killed.
    """
    _send(processes, by)
    stubborn = _wait(processes, grace_s)
    _send(stubborn, signal.SIGKILL)
    _wait(stubborn, _KILL_S)
    return len(stubborn)


def end_tree(process: subprocess.Popen[Any], grace_s: float) -> int:
    """End a child process and its descendants, as `end_processes` does.

    Returns:
        The number of processes that were running.
    """
    if process.poll() is not None:
        return 0
    tree = _running_tree(process.pid)
    _send(tree, signal.SIGTERM)
    stubborn = _wait(tree, grace_s)
    # What a process started while it was ending is killed with it.
    _send({member for parent in stubborn for member in _running_tree(parent.pid)}, signal.SIGKILL)
    _wait(stubborn, _KILL_S)
    return len(tree)


def _running_tree(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return [process for process in (root, *root.children(recursive=True)) if _is_running(process)]
    return []


def _send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _wait(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all processes have ended, or `seconds` have passed; return those that still run."""
    # Not psutil.wait_procs: it reaps children, so that their parent here would take exit code 0 for theirs; and of the
    # zombies of other parents it waits for the end of the time.
    deadline = time.monotonic() + seconds
    while (running := [process for process in processes if _is_running(process)]) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return running


def _is_running(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

"""The processes of a local stack: started on record, found again by anyone, ended with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import psutil

from embedded.home import Home
from include.processes import end_processes

STACK_VARIABLE = "MILLRACE_STACK"
"""Names the home in the environment of every process of a stack, so that strays can be found."""


def spawn(home: Home, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> psutil.Popen:
    """Start a process in a session of its own, its pid on record, its output in `logs/<name>.log`.

    The log of the process before it becomes `<name>.log.1`. A session of its own keeps the terminal's Ctrl-C
    away from it: the stack ends its parts in the right order.

    Raises:
        FileNotFoundError: the command does not exist.
    """
    with _fresh_log(home, name) as log:
        process = psutil.Popen(
            list(argv),
            env={**env, STACK_VARIABLE: str(home.path)},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_hear_ctrl_c,
        )
    (home.pids / name).write_text(f"{process.pid} {process.create_time()}")
    return process


def recorded(home: Home, name: str) -> psutil.Process | None:
    """The process on record under `name`, if it lives: a later process with the same pid is not taken for it."""
    file = home.pids / name
    if not file.exists():
        return None
    pid, created = file.read_text().split()
    try:
        process = psutil.Process(int(pid))
        alive = process.create_time() == float(created) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return None
    return process if alive else None


def of_stack(home: Home) -> list[psutil.Process]:
    """Every living process of the home's stack but this one, whoever its parent is by now.

    PostgreSQL's are not among them: its own pid file tells of them.
    """
    sessions = {int(file.read_text().split()[0]) for file in home.pids.glob("*")}
    return [process for process in _own_processes() if _belongs(process, home, sessions)]


def stop(home: Home, name: str, patience_s: float, by: signal.Signals = signal.SIGTERM) -> None:
    """End the recorded process `name`, if it lives, and remove its record; `by` and `patience_s` as `end_processes`."""
    process = recorded(home, name)
    if process is not None:
        end_processes([process], patience_s, by)
    (home.pids / name).unlink(missing_ok=True)


def _fresh_log(home: Home, name: str) -> BinaryIO:
    log = home.logs / f"{name}.log"
    if log.exists():
        log.replace(home.logs / f"{name}.log.1")
    return log.open("ab")


def _own_processes() -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _belongs(process: psutil.Process, home: Home, sessions: set[int]) -> bool:
    if process.pid == os.getpid():
        return False
    try:
        # A process that set its own title, as Airflow's do, has overwritten its environment by that.
        titled = process.cmdline()[:1] and process.cmdline()[0].startswith("airflow")
        return _marked_for(process) == str(home.path) or bool(titled and os.getsid(process.pid) in sessions)
    except (psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError):
        return False


def _marked_for(process: psutil.Process) -> str | None:
    return process.environ().get(STACK_VARIABLE)


def _hear_ctrl_c() -> None:
    """A shell's background job ignores SIGINT and its children inherit that; Airflow stops cleanly by nothing else."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

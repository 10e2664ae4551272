"""The processes of a local stack: start, record, find and end them. `millrace.processes` ends any tree of processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from embedded.home import Home
from millrace.processes import end_processes

STACK_VARIABLE = "MILLRACE_STACK"
"""The variable with the home in the environment of every process of a stack, to find those without a record."""


def spawn(
    home: Home, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path, umask: int = -1
) -> psutil.Popen:
    """Start a process in a new session, record its pid, and write its output to `logs/<name>.log`.

    The previous log becomes `<name>.log.1`. In a new session the process does not get the terminal's Ctrl-C: the stack
    ends its parts in the right order. By default the process has the umask of this one.

    Raises:
        FileNotFoundError: the command does not exist.
    """
    log_file = home.logs / f"{name}.log"
    if log_file.exists():
        log_file.replace(home.logs / f"{name}.log.1")
    with log_file.open("ab") as log:
        process = psutil.Popen(
            list(argv),
            env={**env, STACK_VARIABLE: str(home.path)},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            umask=umask,
        )
    (home.pids / name).write_text(f"{process.pid} {process.create_time()}")
    return process


def recorded(home: Home, name: str) -> psutil.Process | None:
    """Return the process that is recorded as `name` if it is running, but no later process with the same pid."""
    file = home.pids / name
    if not file.exists():
        return None
    pid, created = file.read_text().split()
    try:
        process = psutil.Process(int(pid))
        is_running = process.create_time() == float(created) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return None
    return process if is_running else None


def of_stack(home: Home) -> list[psutil.Process]:
    """Return all running processes of the home's stack, without this one, also those whose parents have ended.

    PostgreSQL's processes are not among them: PostgreSQL has its own pid file.
    """
    sessions = {int(file.read_text().split()[0]) for file in home.pids.glob("*")}
    return [process for process in psutil.process_iter() if _belongs(process, home, sessions)]


def stop(home: Home, name: str, patience_s: float) -> None:
    """End the recorded process `name`, if it lives, and remove its record; it is killed after `patience_s` seconds."""
    process = recorded(home, name)
    if process is not None:
        end_processes([process], patience_s)
    (home.pids / name).unlink(missing_ok=True)


def _belongs(process: psutil.Process, home: Home, sessions: set[int]) -> bool:
    try:
        is_own = process.uids().real == os.getuid() and process.status() != psutil.STATUS_ZOMBIE
        if not is_own or process.pid == os.getpid():
            return False
        # A process that sets its own title, as Airflow's do, overwrites its environment with it.
        titled = process.cmdline()[:1] and process.cmdline()[0].startswith("airflow")
        return process.environ().get(STACK_VARIABLE) == str(home.path) or bool(
            titled and os.getsid(process.pid) in sessions
        )
    except (psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError):
        return False

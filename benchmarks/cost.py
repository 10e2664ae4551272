"""The cost of a process: wall time, CPU-seconds of its tree, peak memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

_POLL_S = 0.02
_PATIENCE_S = 1800.0
_LAST_LINES = 15


class FailedRunError(Exception):
    """Raised when a measured process fails, so that its time does not count. The message ends with its last lines."""


@dataclass(frozen=True)
class Cost:
    """The cost of a process or of a part of it.

    Attributes:
        wall_s: seconds on the clock.
        cpu_s: seconds of user and system time of the process and of every descendant.
        peak_mb: largest resident memory of any single process of the tree, in megabytes; 0 if unknown.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of one after the other."""
        return Cost(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s, max(self.peak_mb, other.peak_mb))


@dataclass(frozen=True)
class Measured:
    """One measured process.

    Attributes:
        whole: from its start to its end.
        until: from its start until the awaited file exists; None without an awaited file.
    """

    whole: Cost
    until: Cost | None = None


def measure(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    awaited: Path | None = None,
    patience_s: float = _PATIENCE_S,
) -> Measured:
    """Run a command to its end, and return its cost.

    Args:
        command: the command; all its processes are ended, whatever happens.
        environment: its whole environment.
        log: the file of its output; the command runs in the log's folder, for the files that Spark leaves.
        awaited: a file whose first appearance is timed, too.
        patience_s: the longest time that the command may take.

    Raises:
        FailedRunError: the exit code was not 0, the time was over, or the awaited file did not appear.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        started = time.monotonic()
        process = subprocess.Popen(
            command, env=dict(environment), cwd=log.parent, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            usage, until = _wait(process, started, awaited, patience_s)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if process.returncode != 0:
        raise FailedRunError(f"exit code {process.returncode} of {' '.join(command)}\n{_last_words(log)}")
    if awaited and until is None:
        raise FailedRunError(f"{awaited} did not appear: {' '.join(command)}\n{_last_words(log)}")
    return Measured(_cost_of(usage, time.monotonic() - started), until)


def cpu_of_tree(pid: int) -> float:
    """Return the CPU-seconds of a running process and its descendants so far, ended ones included.

    Raises:
        psutil.NoSuchProcess: the process has ended.
    """
    root = psutil.Process(pid)
    return _cpu_of(root) + sum(map(_cpu_of_descendant, root.children(recursive=True)))


@contextmanager
def noted(costs: Path, name: str) -> Iterator[None]:
    """Append to `costs` the cost of this Spark driver, JVM and Python, within the block, under `name`."""
    java = os.getppid()
    started, cpu_s = time.monotonic(), cpu_of_tree(java)
    yield
    cost = Cost(time.monotonic() - started, cpu_of_tree(java) - cpu_s)
    with costs.open("a") as out:
        out.write(f"{json.dumps({'name': name, **asdict(cost)})}\n")


def read_noted(costs: Path) -> dict[str, Cost]:
    """Read the costs that `noted` has written: name -> cost."""
    lines = map(json.loads, costs.read_text().splitlines())
    return {line.pop("name"): Cost(**line) for line in lines}


def _wait(
    process: subprocess.Popen[bytes], started: float, awaited: Path | None, patience_s: float
) -> tuple[resource.struct_rusage, Cost | None]:
    until: Cost | None = None
    while True:
        # wait4 accounts for the process and for every descendant that was waited for: java, Python, their children.
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            if awaited and until is None and awaited.exists():
                until = _cost_of(usage, time.monotonic() - started)
            return usage, until
        wall_s = time.monotonic() - started
        if awaited and until is None and awaited.exists():
            until = Cost(wall_s, cpu_of_tree(process.pid))
        if wall_s > patience_s:
            raise FailedRunError(f"still running after {wall_s:.0f} s: {process.args!r}")
        time.sleep(_POLL_S)


def _cost_of(usage: resource.struct_rusage, wall_s: float) -> Cost:
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _cpu_of(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system + used.children_user + used.children_system)


def _cpu_of_descendant(process: psutil.Process) -> float:
    try:
        return _cpu_of(process)
    except psutil.NoSuchProcess:  # it ended after the listing; its parent has its time by now
        return 0.0


def _last_words(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LAST_LINES:])

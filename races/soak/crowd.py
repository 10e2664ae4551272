"""The writers of a soak: processes that may end at any time, each followed by another."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from embedded.clone import CLONE
from millrace.errors import ExitCode
from races.soak.lives import REFUSALS, Command, Lives

ANSWERS = {ExitCode.OK, ExitCode.CONFLICT, ExitCode.NOT_READY, ExitCode.SPARK_UNAVAILABLE}
"""The exit codes of a process without a signal; all but the first mean that it must be retried."""


@dataclass(frozen=True)
class Life:
    """A process, what it does, and its log."""

    kind: str
    process: subprocess.Popen[bytes]
    log: Path


@dataclass
class Crowd:
    """A number of writers that run at once.

    Attributes:
        size: the number of writers.
        lives: the commands that they may run.
        environment: the environment of their processes.
        logs: the folder of their logs.
        ended: kind of life -> ending -> count.
    """

    size: int
    lives: Lives
    environment: Mapping[str, str]
    logs: Path
    ended: dict[str, Counter[str]] = field(default_factory=dict)
    _running: list[Life] = field(default_factory=list)
    _started: int = 0

    def fill(self) -> None:
        """Start a process for each one that has ended."""
        while len(self._running) < self.size:
            self._running.append(self.begin(*self.lives.any()))

    def begin(self, kind: str, command: Command) -> Life:
        """Start a process."""
        self._started += 1
        log = self.logs / f"{self._started:05d}-{kind.replace(' ', '-')}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=self.environment, cwd=CLONE, stdout=output, stderr=output)
        return Life(kind, process, log)

    def reap(self, struck: set[int]) -> list[str]:
        """Count the processes that have ended; describe those that ended wrongly without being in `struck`."""
        over = [life for life in self._running if life.process.poll() is not None]
        self._running = [life for life in self._running if life not in over]
        for life in over:
            self.ended.setdefault(life.kind, Counter())[ending(life)] += 1
        wrong = [life for life in over if life.process.pid not in struck and not is_answer(life)]
        return [f"{life.kind} ended with {ending(life)}: {last_words(life.log)} ({life.log})" for life in wrong]

    def is_done(self) -> bool:
        """Whether no process is running any more."""
        return not self._running


def ending(life: Life) -> str:
    """Return how a process ended, in one word."""
    code = life.process.returncode
    names = {int(exit_code): exit_code.name.lower() for exit_code in ExitCode}
    if _is_refusal(life):
        return "refused"
    return "killed" if code < 0 or code > 128 else names.get(code, f"exit code {code}")


def is_answer(life: Life) -> bool:
    """Return whether a process without a signal may end like this one."""
    return life.process.returncode in ANSWERS or _is_refusal(life)


def _is_refusal(life: Life) -> bool:
    """Return whether a process rightly did nothing, and said why."""
    refusals = REFUSALS.get(life.kind, ())
    return life.process.returncode > 0 and any(text in life.log.read_text(errors="replace") for text in refusals)


def last_words(log: Path) -> str:
    """Return the last lines of a log as one line."""
    lines = log.read_text(errors="replace").splitlines()
    return " | ".join(line.strip() for line in lines[-6:] if line.strip())[-600:]

"""The writers of a soak: each lives one life after the other, in processes that may end at any moment."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from include.errors import ExitCode
from include.settings import PROJECT
from races.soak.lives import Command, Lives

ANSWERS = {ExitCode.OK, ExitCode.CONFLICT, ExitCode.NOT_READY, ExitCode.SPARK_UNAVAILABLE}
"""How a run may end that nobody has struck; all but the first say that it is to be tried again."""


@dataclass(frozen=True)
class Life:
    """A process, what it does, and where it says so."""

    kind: str
    process: subprocess.Popen[bytes]
    log: Path


@dataclass
class Crowd:
    """So many writers at once.

    Attributes:
        size: how many.
        lives: what they do.
        environment: of their processes.
        logs: the folder of what they say.
        ended: kind of life -> ending -> how often.
    """

    size: int
    lives: Lives
    environment: Mapping[str, str]
    logs: Path
    ended: dict[str, Counter[str]] = field(default_factory=dict)
    _living: list[Life] = field(default_factory=list)
    _born: int = 0

    def fill(self) -> None:
        """Let a new life begin for each one that has ended."""
        while len(self._living) < self.size:
            self._living.append(self.begin(*self.lives.any()))

    def begin(self, kind: str, command: Command) -> Life:
        """Start a process that does this."""
        self._born += 1
        log = self.logs / f"{self._born:05d}-{kind.replace(' ', '-')}.log"
        with log.open("wb") as said:
            process = subprocess.Popen(command, env=self.environment, cwd=PROJECT, stdout=said, stderr=said)
        return Life(kind, process, log)

    def reap(self, struck: set[int]) -> list[str]:
        """Count those who have ended; what they said whom nobody struck, and who ended as nobody should."""
        over = [life for life in self._living if life.process.poll() is not None]
        self._living = [life for life in self._living if life not in over]
        for life in over:
            self.ended.setdefault(life.kind, Counter())[ending(life)] += 1
        odd = [life for life in over if life.process.pid not in struck and life.process.returncode not in ANSWERS]
        return [f"{life.kind} ended with {ending(life)}: {last_words(life.log)} ({life.log})" for life in odd]

    def is_done(self) -> bool:
        """Whether nobody lives any more."""
        return not self._living


def ending(life: Life) -> str:
    """How it ended, in a word."""
    code = life.process.returncode
    known = {int(one): one.name.lower() for one in ExitCode}
    return "killed" if code < 0 or code > 128 else known.get(code, f"exit code {code}")


def last_words(log: Path) -> str:
    """The last lines of a log, in one."""
    lines = log.read_text(errors="replace").splitlines()
    return " | ".join(line.strip() for line in lines[-6:] if line.strip())[-600:]

"""The disturbance of a soak: processes are killed, terminated, or stopped past the expiry of their lease."""

from __future__ import annotations

import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import psutil

from embedded.home import Home
from embedded.spark.server import NAME, SparkServer
from embedded.stack_processes import of_stack, recorded

LONGEST_STOP_S = 60.0
"""A lease expires after 30 seconds, so half of the stopped processes lose theirs."""


@dataclass
class Trouble:
    """Sends signals to the processes of a home, without its Spark server.

    Attributes:
        home: the home.
        chance: the source of random numbers.
        strikes: signal -> count.
        struck: pids of the processes that got a signal, and of their parents.
    """

    home: Home
    chance: Random
    strikes: Counter[str] = field(default_factory=Counter)
    struck: set[int] = field(default_factory=set)
    _asleep: list[tuple[float, psutil.Process]] = field(default_factory=list)

    def strike(self) -> None:
        """Send a signal to a random process, if there is one."""
        victims = [process for process in of_stack(self.home) if process not in self._server()]
        if not victims:
            return
        victim = self.chance.choice(victims)
        how = self.chance.choices([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP], [6, 2, 3])[0]
        try:
            self.struck.update({victim.pid, *(parent.pid for parent in victim.parents())})
            victim.send_signal(how)
        except psutil.NoSuchProcess:
            return
        self.strikes[how.name] += 1
        if how is signal.SIGSTOP:
            self._asleep.append((time.monotonic() + self.chance.uniform(1, LONGEST_STOP_S), victim))

    def wake(self, *, everybody: bool = False) -> None:
        """Continue the processes whose stop is over; with `everybody`, all."""
        now = time.monotonic()
        due = [(until, process) for until, process in self._asleep if everybody or until <= now]
        for until, process in due:
            self._asleep.remove((until, process))
            if process.is_running():
                process.send_signal(signal.SIGCONT)

    def kill_server(self, server: SparkServer) -> None:
        """Kill the Spark server."""
        for process in self._server():
            process.kill()
        self.strikes["SIGKILL of the Spark server"] += 1
        deadline = time.monotonic() + 30
        while server.is_alive() and time.monotonic() < deadline:
            time.sleep(0.1)

    def _server(self) -> list[psutil.Process]:
        process = recorded(self.home, NAME)
        try:
            return [process, *process.children(recursive=True)] if process else []
        except psutil.NoSuchProcess:
            return []

"""Run a soak: the feed delivers, writers run and are killed, and at the end plain runs load the rest."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from embedded.airflow.standalone import clean_environment
from embedded.home import Home, free_port
from embedded.spark.server import NAME as SPARK
from embedded.spark.server import SparkServer
from embedded.stack_processes import STACK_VARIABLE, of_stack, stop
from millrace.clock import utc_now
from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import PENDING
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.processes import end_processes
from millrace.settings import Settings
from races.soak.ageing import age
from races.soak.crowd import Crowd, Life, ending, is_answer, last_words
from races.soak.feed import DAYS, Feed
from races.soak.lives import GOLD, SILVER, TABLES, Lives
from races.soak.trouble import Trouble
from races.soak.verdict import batches, folders, problems, traces

SERVER_DEATHS = 2
OLD_DAYS, AGE_DAYS = 3, 40
"""The days that are loaded first, and their age afterwards: beyond the retentions, so that maintenance deletes."""
_TRIES, _PATIENCE_S = 10, 300.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """The parameters of a soak.

    Attributes:
        folder: the folder of all its files; its old content is removed.
        seconds: the time for which the writers are disturbed.
        writers: the number of writers at once.
        delivery_s: seconds between two deliveries.
        strike_s: mean seconds between two signals.
        seed: the seed of random numbers.
    """

    folder: Path
    seconds: float
    writers: int = 8
    delivery_s: float = 4.0
    strike_s: float = 6.0
    seed: int = 0


@dataclass(frozen=True)
class Score:
    """The result of a soak.

    Attributes:
        problems: what is wrong; empty if all is right.
        events: the number of delivered events.
        batches: table -> number of committed batches.
        ended: kind of life -> ending -> count.
        strikes: signal -> count.
        traces: what deletes something -> how often it did.
    """

    problems: list[str]
    events: int
    batches: dict[str, int]
    ended: dict[str, Counter[str]] = field(default_factory=dict)
    strikes: Counter[str] = field(default_factory=Counter)
    traces: Counter[str] = field(default_factory=Counter)


def soak(plan: Plan, say: Say) -> Score:
    """Run the soak, and end all its processes, whatever happens."""
    shutil.rmtree(plan.folder, ignore_errors=True)
    home = Home((plan.folder / "home").resolve())
    home.prepare()
    folder, tables = plan.folder.resolve(), Path(__file__).parent / "tables"
    settings = Settings(root=folder / "lakehouse", landing=str(folder / "landing"), tables=tables).absolute()
    server = SparkServer(home, settings.jars, free_port(), memory="4g")
    try:
        server.start(clean_environment())
        return _Soak(plan, home, settings, server, say).run()
    finally:
        stop(home, SPARK, patience_s=15)
        end_processes(of_stack(home), 5)


class _Soak:
    def __init__(self, plan: Plan, home: Home, settings: Settings, server: SparkServer, say: Say) -> None:
        self._plan, self._home, self._server, self._say = plan, home, server, say
        self._paths = settings.paths
        mark = {STACK_VARIABLE: str(home.path)}
        environment = {**clean_environment(), **server.client_env(), **settings.environment(), **mark}
        chance = Random(plan.seed)
        self._feed = Feed(Path(settings.landing), Random(chance.random()))
        self._trouble = Trouble(home, Random(chance.random()))
        self._chance = Random(chance.random())
        self._middle = utc_now()
        self._crowd = Crowd(plan.writers, Lives(settings, environment, Random(chance.random())), environment, home.logs)

    def run(self) -> Score:
        for day in range(1, DAYS + 1):
            self._feed.deliver(day)
        for day in range(1, OLD_DAYS + 1):
            self._load(day)  # without disturbance: a replay needs the tables
        self._grow_old()
        wrong = self._disturb()
        wrong += self._calm_down()
        self._say("the disturbance is over; loading the rest")
        wrong += self._restore_once()
        self._release_holds()
        for day in (*range(1, DAYS + 1), 1):
            self._load(day)
        if quarantined_rows(StoredRows(SILVER, self._paths), RowFilter(statuses=PENDING)):
            self._run_until_ok("a plain replay", self._crowd.lives.replay())
        self._run_until_ok("a plain verification", ["lakehouse", "verify", GOLD])
        self._run_until_ok("plain maintenance", ["lakehouse", "maintain"])
        wrong = [*wrong, *problems(self._paths, self._feed.events)]
        counts = {table: len(batches(self._paths, table)) for table in TABLES}
        ended, strikes = self._crowd.ended, self._trouble.strikes
        return Score(wrong, len(self._feed.events), counts, ended, strikes, traces(self._paths))

    def _grow_old(self) -> None:
        """Make what was loaded old, for a Spark server that does not know it."""
        stop(self._home, SPARK, patience_s=15)
        for folder in folders(self._paths):
            age(Path(str(folder)), latest_version(folder), AGE_DAYS)
        self._server.start(clean_environment())

    def _restore_once(self) -> list[str]:
        """Restore each table to what readers used in the middle of the disturbance; it may be the same."""
        lives = list[Life]()
        for table in TABLES:
            lives.append(self._crowd.begin("restore", self._crowd.lives.restore(table, self._middle)))
            lives[-1].process.wait(timeout=_PATIENCE_S)
        return [f"a plain restore: {last_words(life.log)}" for life in lives if not is_answer(life)]

    def _release_holds(self) -> None:
        """Release all holds, one after another."""
        ops = OpsTables(self._paths)
        for name in sorted({hold.name for hold in ops.holds.active()}):
            self._run_until_ok("a plain release", ["lakehouse", "hold", "release", name, "--why", "the case is closed"])

    def _disturb(self) -> list[str]:
        started, wrong = time.monotonic(), list[str]()
        deaths = [self._plan.seconds * (number + 1) / (SERVER_DEATHS + 1) for number in range(SERVER_DEATHS)]
        delivers_at = strikes_at = 0.0
        while (now := time.monotonic() - started) < self._plan.seconds:
            self._crowd.fill()
            wrong += self._reap()
            self._trouble.wake()
            if now < self._plan.seconds / 2:
                self._middle = utc_now()
            if now >= delivers_at:
                self._feed.deliver(self._chance.randint(1, DAYS))
                delivers_at = now + self._plan.delivery_s
            if now >= strikes_at:
                self._trouble.strike()
                strikes_at = now + self._chance.expovariate(1 / self._plan.strike_s)
            if deaths and now >= deaths[0]:
                deaths.pop(0)
                self._trouble.kill_server(self._server)
                self._server.start(clean_environment())
            time.sleep(0.1)
        return wrong

    def _reap(self) -> list[str]:
        wrong = self._crowd.reap(self._trouble.struck)
        for line in wrong:
            self._say(line)
        return wrong

    def _calm_down(self) -> list[str]:
        """Wake all processes, and wait until the last one has ended, orphans included."""
        self._trouble.wake(everybody=True)
        wrong, deadline = list[str](), time.monotonic() + _PATIENCE_S
        while (not self._crowd.is_done() or len(of_stack(self._home)) > 1) and time.monotonic() < deadline:
            wrong += self._reap()
            time.sleep(0.2)
        left = [process.pid for process in of_stack(self._home)][1:]
        return [*wrong, *([f"these processes never ended: {left}"] if left else [])]

    def _load(self, day: int) -> None:
        self._run_until_ok("a plain run", self._crowd.lives.load(day))

    def _run_until_ok(self, kind: str, command: list[str]) -> None:
        """Run a command until it succeeds.

        Raises:
            RuntimeError: it failed _TRIES times.
        """
        for _ in range(_TRIES):
            life = self._crowd.begin(kind, command)
            if life.process.wait(timeout=_PATIENCE_S) == 0:
                return
        msg = f"{kind} ended with {ending(life)} {_TRIES} times: {last_words(life.log)} ({life.log})"
        raise RuntimeError(msg)

"""The commands of a soak's writers, each of which a person could run, too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from uuid import uuid4

from millrace.cli.runs.driver import driver_command
from millrace.clock import utc_now
from millrace.contracts.job.args import WRITER_OF_LAYER, Job, JobArgs
from millrace.control.ops_tables import OpsTables
from millrace.settings import Settings
from races.soak.feed import DAYS, interval

BRONZE, SILVER, GOLD = TABLES = "bronze.orders", "silver.orders", "gold.revenue_daily"
FIX = "amount = abs(amount)"
LONGEST_RESTORE_S = 240
"""How far back a restore goes."""

Command = list[str]

_WEIGHTS = {
    "load a day": 3,
    "ingest": 6,
    "merge": 6,
    "aggregate": 4,
    "read a day again": 1,
    "replay": 2,
    "optimize": 3,
    "vacuum": 3,
    "clean the log": 3,
    "set a property": 2,
    "hold": 1,
    "release": 2,
    "restore": 4,
}
"""Kind of life -> its relative frequency."""

REFUSALS = {
    "vacuum": ("VACUUM refused: ",),
    "release": ("No table has the hold ",),
    "restore": (
        " already\n",
        "would do something else than what",
        "was not undone: another commit came right after it",
    ),
}
"""Kind of life -> what it says, in its first line, if it rightly does nothing."""


class Lives:
    """Commands for one lakehouse.

    Args:
        settings: the settings of the lakehouse.
        environment: the environment of the commands, with the address of the Spark server.
        chance: the source of random numbers.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str], chance: Random) -> None:
        self._settings = settings
        self._environment = environment
        self._chance = chance

    def any(self) -> tuple[str, Command]:
        """Return a random kind of life, and its command."""
        kind = self._chance.choices([*_WEIGHTS], [*_WEIGHTS.values()])[0]
        day, table = self._chance.randint(1, DAYS), self._chance.choice(TABLES)
        ago = timedelta(seconds=self._chance.uniform(5, LONGEST_RESTORE_S))
        commands: dict[str, Callable[[], Command]] = {
            "load a day": lambda: self.load(day),
            "ingest": lambda: self._job(WRITER_OF_LAYER["bronze"], BRONZE, day),
            "merge": lambda: self._job(WRITER_OF_LAYER["silver"], SILVER, day),
            "aggregate": lambda: self._job(WRITER_OF_LAYER["gold"], GOLD, day),
            "read a day again": lambda: self._job(WRITER_OF_LAYER["silver"], SILVER, day, reprocess=True),
            "replay": self.replay,
            "optimize": lambda: self._job(Job.TABLE_OPTIMIZE, table, day),
            "vacuum": lambda: self._job(Job.TABLE_VACUUM, table, day),
            "clean the log": lambda: self._job(Job.TABLE_LOG, table, day),
            "set a property": lambda: self.set_property(table),
            "hold": lambda: self.hold(table),
            "release": self.release,
            "restore": lambda: self.restore(table, utc_now() - ago),
        }
        return kind, commands[kind]()

    def load(self, day: int) -> Command:
        """Load a day into all three layers, as a person would."""
        return ["lakehouse", "run", "--interval", f"{interval(day).start:%Y-%m-%d}"]

    def replay(self) -> Command:
        """Fix and replay the rows in the quarantine of silver."""
        return ["lakehouse", "quarantine", "replay", SILVER, "--all", "--set", FIX, "--why", "the till's sign"]

    def set_property(self, table: str) -> Command:
        """Set properties of a table as another tool does."""
        return [sys.executable, "-m", "races.soak.other_tool", str(self._settings.paths.table(table))]

    def hold(self, table: str) -> Command:
        """Hold a table under a name of its own."""
        return ["lakehouse", "hold", "set", f"case-{uuid4().hex[:8]}", table, "--why", "a court asks for it"]

    def release(self) -> Command:
        """Release a hold that is set; without any, a hold that never was."""
        names = sorted({hold.name for hold in OpsTables(self._settings.paths).holds.active()})
        return ["lakehouse", "hold", "release", self._chance.choice(names or ["none"]), "--why", "the case is closed"]

    def restore(self, table: str, at: datetime) -> Command:
        """Restore what readers used at a time, as a person who first looks at what would change."""
        return [sys.executable, "-m", "races.soak.restoring", table, at.isoformat()]

    def _job(self, job: Job, table: str, day: int, *, reprocess: bool = False) -> Command:
        name = f"{job}-{uuid4().hex[:8]}"
        arguments = JobArgs(
            table=table,
            interval_start=interval(day).start,
            interval_end=interval(day).end,
            run_id=f"soak__{name}",
            root=self._settings.root,
            landing=self._settings.landing,
            tables=self._settings.tables,
            report=self._settings.run_paths.reports / f"{name}.json",
            reprocess=reprocess,
        )
        return driver_command(self._settings, job.application, arguments, self._environment)

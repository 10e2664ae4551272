"""The commands of a soak's writers, each of which a person could run, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from uuid import uuid4

from millrace.cli.runs.driver import driver_command
from millrace.contracts.job.args import WRITER_OF_LAYER, Job, JobArgs
from millrace.settings import Settings
from races.soak.feed import DAYS, interval

BRONZE, SILVER, GOLD = TABLES = "bronze.orders", "silver.orders", "gold.revenue_daily"
FIX = "amount = abs(amount)"

Command = list[str]

_WEIGHTS = {
    "load a day": 3,
    "ingest": 6,
    "merge": 6,
    "aggregate": 4,
    "read a day again": 1,
    "replay": 2,
    "optimize": 3,
    "vacuum": 1,
}
"""Kind of life -> its relative frequency."""


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
        commands: dict[str, Callable[[], Command]] = {
            "load a day": lambda: self.load(day),
            "ingest": lambda: self._job(WRITER_OF_LAYER["bronze"], BRONZE, day),
            "merge": lambda: self._job(WRITER_OF_LAYER["silver"], SILVER, day),
            "aggregate": lambda: self._job(WRITER_OF_LAYER["gold"], GOLD, day),
            "read a day again": lambda: self._job(WRITER_OF_LAYER["silver"], SILVER, day, reprocess=True),
            "replay": self.replay,
            "optimize": lambda: self._job(Job.TABLE_OPTIMIZE, table, day),
            "vacuum": lambda: self._job(Job.TABLE_VACUUM, table, day),
        }
        return kind, commands[kind]()

    def load(self, day: int) -> Command:
        """Load a day into all three layers, as a person would."""
        return ["lakehouse", "run", "--interval", f"{interval(day).start:%Y-%m-%d}"]

    def replay(self) -> Command:
        """Fix and replay the rows in the quarantine of silver."""
        return ["lakehouse", "quarantine", "replay", SILVER, "--all", "--set", FIX, "--why", "the till's sign"]

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

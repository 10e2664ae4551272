"""The arguments of the drivers that carry the tables of one domain: through one interval, or on and on."""

from __future__ import annotations

from pathlib import Path

from include.contracts.command_line import CommandLine
from include.contracts.interval import Instant, Interval
from include.contracts.job_args import JobArgs
from include.contracts.lake_root import LakeRoot
from include.contracts.landing_root import LandingRoot

RUN_INTERVAL = "spark_jobs/jobs/run_interval.py"
"""The file of the driver that runs one interval, relative to the project."""

FOLLOW_DOMAIN = "spark_jobs/jobs/follow_domain.py"
"""The file of the driver that goes on until it is told to stop."""


class DomainArgs(CommandLine):
    """Which tables to run, and where things lie.

    Attributes:
        domain: the domain whose tables are run, in build order.
        run_id: who asked.
        root: the lakehouse root.
        landing: the landing root.
        tables: the folder of the table specs.
        reports: folder that gets the reports.
        table: only these tables; all of the domain when left out.
    """

    domain: str
    run_id: str
    root: LakeRoot
    landing: LandingRoot
    tables: Path
    reports: Path
    table: tuple[str, ...] = ()

    @property
    def stop(self) -> Path:
        """The file whose presence tells a driver that follows its sources to end after the current commit."""
        return self.reports / "stop"

    @property
    def log(self) -> Path:
        """The file with all that the driver says."""
        return self.reports / "driver.log"

    def at(self, interval: Interval, *, reprocess: bool = False) -> IntervalArgs:
        """The same for one interval."""
        given = self.model_dump(include=set(DomainArgs.model_fields))
        return IntervalArgs(**given, interval_start=interval.start, interval_end=interval.end, reprocess=reprocess)


class IntervalArgs(DomainArgs):
    """What to run.

    Attributes:
        interval_start: start of the interval (UTC, inclusive).
        interval_end: end of the interval (UTC, exclusive).
        reprocess: read the interval's bronze rows again, whatever was consumed.
    """

    interval_start: Instant
    interval_end: Instant
    reprocess: bool = False

    @property
    def interval(self) -> Interval:
        """The interval of the run."""
        return Interval(start=self.interval_start, end=self.interval_end)

    def report_of(self, table: str) -> Path:
        """The file that the report of one table goes to."""
        return self.reports / f"{table}.json"

    def for_table(self, table: str) -> JobArgs:
        """The arguments of the job of one table."""
        common = self.model_dump(exclude={"domain", "reports", "table"})
        return JobArgs(**common, table=table, report=self.report_of(table))

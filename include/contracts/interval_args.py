"""The arguments of the driver that carries the tables of one domain through one interval."""

from __future__ import annotations

from pathlib import Path

from include.contracts.command_line import CommandLine
from include.contracts.interval import Instant, Interval
from include.contracts.job_args import JobArgs

APPLICATION = "spark_jobs/jobs/run_interval.py"
"""The driver's file, relative to the project."""


class IntervalArgs(CommandLine):
    """What to run.

    Attributes:
        domain: the domain whose tables are run, in build order.
        interval_start: start of the interval (UTC, inclusive).
        interval_end: end of the interval (UTC, exclusive).
        run_id: who asked.
        root: the lakehouse root.
        landing: the landing root.
        tables: the folder of the table specs.
        reports: folder that gets one report a table, `<table>.json`.
        table: only these tables; all of the domain when left out.
        reprocess: read the interval's bronze rows again, whatever was consumed.
    """

    domain: str
    interval_start: Instant
    interval_end: Instant
    run_id: str
    root: Path
    landing: Path
    tables: Path
    reports: Path
    table: tuple[str, ...] = ()
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

"""The arguments of the drivers that carry the tables of one domain: through some intervals, or on and on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from include.contracts.interval import Instant, Interval
from include.contracts.job.args import Job, JobArgs
from include.contracts.job.command_line import CommandLine
from include.contracts.lake_root import LakeRoot
from include.contracts.landing_root import LandingRoot
from include.errors import ExitCode

RUN_INTERVALS = "spark_jobs/jobs/run_intervals.py"
"""The file of the driver that runs intervals, relative to the project."""

FOLLOW_DOMAIN = "spark_jobs/jobs/follow_domain.py"
"""The file of the driver that goes on until it is told to stop."""

MAINTAIN_TABLES = "spark_jobs/jobs/maintain_tables.py"
"""The file of the driver that maintains tables, relative to the project."""

MAINTENANCE_JOBS = (Job.TABLE_OPTIMIZE, Job.TABLE_VACUUM)
"""What is done to each table, in this order."""

GO_ON = (ExitCode.OK, ExitCode.BAD_SPEC)
"""Endings of a table that do not keep the others, sound as their specs are, from the intervals that follow."""


KEPT_REPORTS = 1000
"""So many of its last reports a driver that follows its sources leaves in its folder."""


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
    def waiting(self) -> Path:
        """The file in which a driver that follows its sources says what it waits for, a line a table."""
        return self.reports / "waiting.txt"

    def numbered(self, number: int) -> Path:
        """The file of the report `number`, from 1 on, of a driver that follows its sources."""
        return self.reports / f"{number:06d}.json"

    @property
    def log(self) -> Path:
        """The file with all that the driver says."""
        return self.reports / "driver.log"

    def through(
        self,
        intervals: Sequence[Interval],
        *,
        reprocess: bool = False,
        skip_missing: bool = False,
        allow_deletes: str = "",
    ) -> IntervalsArgs:
        """The same for some intervals, oldest first."""
        return IntervalsArgs(
            **self.model_dump(include=set(DomainArgs.model_fields)),
            starts=tuple(interval.start for interval in intervals),
            ends=tuple(interval.end for interval in intervals),
            reprocess=reprocess,
            skip_missing=skip_missing,
            allow_deletes=allow_deletes,
        )

    def for_table(
        self, table: str, interval: Interval, report: Path, *, reprocess: bool = False, allow_deletes: str = ""
    ) -> JobArgs:
        """The arguments of the job of one table for one interval."""
        common = self.model_dump(include={"run_id", "root", "landing", "tables"})
        return JobArgs(
            **common,
            table=table,
            interval_start=interval.start,
            interval_end=interval.end,
            report=report,
            reprocess=reprocess,
            allow_deletes=allow_deletes,
        )


class IntervalsArgs(DomainArgs):
    """What to run.

    Attributes:
        starts: start of each interval (UTC, inclusive), oldest first.
        ends: end of each interval (UTC, exclusive), in the same order.
        reprocess: read the intervals' bronze rows again, whatever was consumed.
        skip_missing: leave a table out of an interval whose landing folder is missing, and go on.
        allow_deletes: the person who lets more keys go than `max_deleted_percent`; nobody for none.
    """

    starts: tuple[Instant, ...]
    ends: tuple[Instant, ...]
    reprocess: bool = False
    skip_missing: bool = False
    allow_deletes: str = ""

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """The intervals of the run, oldest first."""
        return tuple(Interval(start=start, end=end) for start, end in zip(self.starts, self.ends, strict=True))

    def report_of(self, interval: Interval, table: str) -> Path:
        """The file that the report of one table for one interval goes to."""
        return self.reports / f"{interval.start:%Y-%m-%dT%H%M%SZ}" / f"{table}.json"


class MaintenanceArgs(DomainArgs):
    """What to maintain.

    Attributes:
        start: start of the interval under which it is reported (UTC, inclusive).
        end: its end (UTC, exclusive).
        dry_run: only say what would be done.
    """

    start: Instant
    end: Instant
    dry_run: bool = False

    @property
    def interval(self) -> Interval:
        """The interval under which it is reported."""
        return Interval(start=self.start, end=self.end)

    def report_of(self, job: Job, table: str) -> Path:
        """The file that the report of one job on one table goes to."""
        return self.reports / job.value / f"{table}.json"

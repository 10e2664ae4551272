"""The arguments of the drivers that run or maintain several tables of one domain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from millrace.contracts.interval import Instant, Interval
from millrace.contracts.job.args import CommandLine, Job, JobArgs
from millrace.contracts.roots import LakeRoot, LandingRoot
from millrace.contracts.time_format import FILE_NAME
from millrace.errors import ExitCode

MOST_BYTES = 64 * 1024**3
"""What one run of maintenance rewrites: some hours of a small machine."""

MOST_TIME = timedelta(hours=4)
"""After this time a run of maintenance begins no further action; the next run goes on."""

CONTINUE_AFTER = (ExitCode.OK, ExitCode.BAD_SPEC)
"""Exit codes of a table after which a driver still runs the next interval of the other tables."""


class DomainArgs(CommandLine):
    """The tables to run, and the places of the lakehouse.

    Attributes:
        domain: the domain whose tables are run, in build order.
        run_id: the id of the run.
        root: the lakehouse root.
        landing: the landing root.
        tables: the folder of the table specs.
        reports: the folder of the reports.
        table: only these tables; by default all tables of the domain.
    """

    domain: str
    run_id: str
    root: LakeRoot
    landing: LandingRoot
    tables: Path
    reports: Path
    table: tuple[str, ...] = ()

    @property
    def stop_file(self) -> Path:
        """The file whose existence tells a driver that follows its sources to end after the current commit."""
        return self.reports / "stop"

    @property
    def waiting_file(self) -> Path:
        """The file in which a driver that follows its sources writes what it waits for, one line per table."""
        return self.reports / "waiting.txt"

    def report_number(self, number: int) -> Path:
        """Return the file of the report `number` (from 1) of a driver that follows its sources."""
        return self.reports / f"{number:06d}.json"

    @property
    def log_file(self) -> Path:
        """The log of the driver."""
        return self.reports / "driver.log"

    def for_intervals(
        self,
        intervals: Sequence[Interval],
        *,
        reprocess: bool = False,
        skip_missing: bool = False,
        allow_deletes: str = "",
    ) -> IntervalsArgs:
        """Return the same arguments for some intervals, oldest first."""
        return IntervalsArgs(
            **self.model_dump(),
            starts=tuple(interval.start for interval in intervals),
            ends=tuple(interval.end for interval in intervals),
            reprocess=reprocess,
            skip_missing=skip_missing,
            allow_deletes=allow_deletes,
        )

    def for_table(
        self, table: str, interval: Interval, report: Path, *, reprocess: bool = False, allow_deletes: str = ""
    ) -> JobArgs:
        """Return the arguments of the job of one table for one interval."""
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
    """The arguments of a driver that runs intervals.

    Attributes:
        starts: start of each interval (UTC, inclusive), oldest first.
        ends: end of each interval (UTC, exclusive), in the same order.
        reprocess: whether to read the intervals' bronze rows again, even if they were consumed before.
        skip_missing: whether to skip a table in an interval whose landing folder is missing.
        allow_deletes: the person who allows more deleted keys than `max_deleted_percent`; empty for nobody.
    """

    # Two lists of instants, since one argument has at most 128 KiB: as one list of intervals it would hold five years.
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
        """Return the file of the report of one table for one interval."""
        return self.reports / f"{interval.start:{FILE_NAME}}" / f"{table}.json"


class MaintenanceArgs(DomainArgs):
    """The arguments of a driver that maintains tables.

    Attributes:
        table: the table of each action, in the order of the actions; a table may come again.
        job: what each action does, in the same order.
        interval: the interval that the reports name.
        until: the driver begins no action after this time.
        allow_deletes: the person who allows to delete what tables keep for a short time only; empty for nobody.
    """

    job: tuple[Job, ...]
    interval: Interval
    until: Instant
    allow_deletes: str = ""

    @property
    def actions(self) -> list[tuple[str, Job]]:
        """The table and the job of each action, in their order."""
        return list(zip(self.table, self.job, strict=True))

    def report_of(self, job: Job, table: str) -> Path:
        """Return the file of the report of one job on one table."""
        return self.reports / job.value / f"{table}.json"

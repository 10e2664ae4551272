"""A batch without a kill, and a copy of the lakehouse before it: killed drivers must give the same result."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.contracts.job.report import JobReport
from include.control.log.delta_log import commits_after
from include.errors import ExitCode, Outcome
from tests.support.killed_drivers.drivers import DriverEnd, Drivers
from tests.support.killed_drivers.outcome import lost_attempts, outcome, states_of_files
from tests.support.lakehouse import Lakehouse, copy_lakehouse
from tests.support.waiting import wait_for


@dataclass(frozen=True)
class CleanBatch:
    """A batch whose driver was not killed.

    Attributes:
        table: the table that it was written to.
        number: the day of its run.
        before: the lakehouse before the batch.
        report: the report of its driver.
        end: the `outcome` of the table after the batch.
        tries: landing file -> the number of tries after the batch.
    """

    table: str
    number: int
    before: Lakehouse
    report: JobReport
    end: dict[str, Any]
    tries: dict[str, int]

    @property
    def batch_seq(self) -> int:
        """The number of the batch."""
        assert self.report.batch_seq
        return self.report.batch_seq

    def kill(self, drivers: Drivers, shop: Lakehouse, place: str) -> None:
        """Run the driver in a copy of the lakehouse, and check that it is killed at the place."""
        assert_killed(drivers.run(shop, self.table, self.number, dies=place))

    def run(self, drivers: Drivers, shop: Lakehouse) -> JobReport:
        """Run the driver, and check that it succeeds."""
        return run_successfully(drivers, shop, self.table, self.number)

    def assert_same(self, shop: Lakehouse, report: JobReport) -> None:
        """Check that tables, ledger, certificates and report are the same as after this batch."""
        end = outcome(shop.paths, self.table)
        assert {part: end[part] for part in end} == self.end
        assert set(lost_attempts(shop.paths, self.table)) <= {"intent"}
        for name in ("batch_seq", "version", "certified_version", "table_rows"):
            assert getattr(report, name) == getattr(self.report, name), name
        assert report.rows.are_conserved
        if report.outcome == Outcome.COMMITTED:
            assert report.rows == self.report.rows

    def extra_tries(self, shop: Lakehouse) -> set[int]:
        """Return by how many tries the files of the batch exceed those of the batch without a kill."""
        files = {path for path, number, *_ in self.end["files"] if number == self.batch_seq}
        now = tries(shop, self.table)
        assert {path: now[path] for path in now if path not in files}.items() <= self.tries.items()
        return {now[path] - self.tries[path] for path in files}


def run_clean_batch(drivers: Drivers, shop: Lakehouse, table: str, number: int = 1) -> CleanBatch:
    """Run a batch without a kill, and keep a copy of the lakehouse before it."""
    before = copy_lakehouse(shop, shop.folder.parent / f"before_{table}")
    report = run_successfully(drivers, shop, table, number)
    return CleanBatch(table, number, before, report, outcome(shop.paths, table), tries(shop, table))


def run_successfully(drivers: Drivers, shop: Lakehouse, table: str, number: int = 1) -> JobReport:
    """Run the table's driver, and check that it succeeds."""
    end = drivers.run(shop, table, number)
    assert end.code == ExitCode.OK, end.output
    assert end.report is not None
    return end.report


def tries(shop: Lakehouse, table: str) -> dict[str, int]:
    """Return landing file -> number of tries, as `lakehouse files` shows it."""
    return {state.path: state.tries for state in states_of_files(shop.paths, table)}


def wait_for_late_writes(shop: Lakehouse, table: str, report: JobReport) -> None:
    """Wait until the server has ended the writes of a dead driver whose batch another driver has ended meanwhile."""
    if report.outcome == Outcome.COMMITTED:
        wait_for(lambda: _files_of_no_version(shop.paths.table(table)))
        time.sleep(1)  # the dead driver's commit would come right after its files


def _files_of_no_version(table: Path) -> set[str]:
    """Return the data files in the folder of a table that no version of it names."""
    named = {name for commit in commits_after(table, -1) for name in commit.added}
    return {file.name for file in table.glob("*.parquet")} - named


def assert_killed(end: DriverEnd) -> None:
    """Check that the process was killed, and left no report."""
    assert end.code == -signal.SIGKILL, end.output
    assert end.report is None

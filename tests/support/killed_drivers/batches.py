"""A batch without a death, and a copy of the lakehouse before it: jobs that die must give the same result."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import QuarantineRequest
from millrace.control.log.delta_log import commits_after, latest_version
from millrace.errors import ExitCode, Outcome
from tests.support.killed_drivers.drivers import AnyDrivers, DriverEnd, OwnProcess
from tests.support.killed_drivers.outcome import lost_attempts, outcome, states_of_files
from tests.support.killed_drivers.scenarios import SCENARIOS
from tests.support.lakehouse import Lakehouse, copy_lakehouse
from tests.support.waiting import wait_for


@dataclass(frozen=True)
class CleanBatch:
    """A batch whose driver did not die.

    Attributes:
        table: the table that it was written to.
        before: the lakehouse before the batch.
        report: the report of its driver.
        end: the `outcome` of the table after the batch.
        tries: landing file -> the number of tries after the batch.
        request: the replay of quarantined rows that it is; None for a run of the table.
    """

    table: str
    before: Lakehouse
    report: JobReport
    end: dict[str, Any]
    tries: dict[str, int]
    request: QuarantineRequest | None

    @property
    def batch_seq(self) -> int:
        """The number of the batch."""
        assert self.report.batch_seq
        return self.report.batch_seq

    def kill(self, drivers: AnyDrivers, shop: Lakehouse, place: str) -> None:
        """Run the driver in a copy of the lakehouse, and check that it dies at the place.

        Once it is committed, a run of the table ends a replay that has died.
        """
        assert self.report.version
        is_committed = latest_version(shop.paths.table(self.table)) >= self.report.version
        replay = {} if is_committed or not self.request else {"job": Job.QUARANTINE_REPLAY, "request": self.request}
        assert_killed(drivers.run(shop, self.table, dies=place, **replay))

    def run(self, drivers: AnyDrivers, shop: Lakehouse) -> JobReport:
        """Run the table's driver, and check that it succeeds."""
        return run_successfully(drivers, shop, self.table)

    def assert_same(self, shop: Lakehouse, report: JobReport) -> None:
        """Check that tables, ledger, certificates and report are the same as after this batch."""
        end = outcome(shop.paths, self.table)
        assert {part: end[part] for part in end} == self.end
        assert set(lost_attempts(shop.paths, self.table)) <= {"intent", "failed"}
        for name in ("batch_seq", "version", "certified_version", "table_rows"):
            assert getattr(report, name) == getattr(self.report, name), name
        assert report.rows.are_conserved
        if report.outcome == Outcome.COMMITTED:
            assert report.rows == self.report.rows

    def extra_tries(self, shop: Lakehouse) -> set[int]:
        """Return by how many tries the files of the batch exceed those of the batch without a death."""
        files = {path for path, number, *_ in self.end["files"] if number == self.batch_seq}
        now = tries(shop, self.table)
        assert {path: now[path] for path in now if path not in files}.items() <= self.tries.items()
        return {now[path] - self.tries[path] for path in files}


def run_scenario(name: str, folder: Path) -> CleanBatch:
    """Prepare the lakehouse of a scenario, keep a copy of it, and run the batch."""
    scenario, shop = SCENARIOS[name], Lakehouse(folder / "shop")
    scenario.prepare(shop)
    before = copy_lakehouse(shop, folder / "before")
    replay = {"job": Job.QUARANTINE_REPLAY, "request": scenario.request} if scenario.request else {}
    report = succeeded(OwnProcess().run(shop, scenario.table, **replay))
    assert not scenario.rows or report.rows.model_dump(exclude_defaults=True) == scenario.rows
    assert shop.rows(scenario.table, *scenario.columns) == scenario.content
    end = outcome(shop.paths, scenario.table)
    return CleanBatch(scenario.table, before, report, end, tries(shop, scenario.table), scenario.request)


def run_successfully(drivers: AnyDrivers, shop: Lakehouse, table: str, number: int = 1) -> JobReport:
    """Run the table's driver, and check that it succeeds."""
    return succeeded(drivers.run(shop, table, number))


def succeeded(end: DriverEnd) -> JobReport:
    """Return the report of a driver that has succeeded."""
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
    """Check that the job died, and left no report."""
    assert end.code == -signal.SIGKILL, end.output
    assert end.report is None

"""A batch that nobody kills, kept with the lakehouse as it was before: killed drivers must end in the same."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.contracts.job.report import JobReport
from include.control.log.delta_log import commits_after
from include.errors import ExitCode, Outcome
from tests.support.killed_drivers.drivers import Drivers, Ended
from tests.support.killed_drivers.outcome import losers, outcome, states
from tests.support.lakehouse import Lakehouse, copy_lakehouse
from tests.support.waiting import wait_for


@dataclass(frozen=True)
class Undisturbed:
    """A batch that nobody killed.

    Attributes:
        table: the table that it was written to.
        number: the day that its run was for.
        before: the lakehouse as the driver that is to die finds it.
        report: the report of its driver.
        end: all that the lakehouse holds of the table afterwards.
        tries: landing file -> how often it was tried by then.
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
        """Run the driver in a copy of the lakehouse; it is killed at the place."""
        assert_killed(drivers.run(shop, self.table, self.number, dies=place))

    def run(self, drivers: Drivers, shop: Lakehouse) -> JobReport:
        """Run the driver; it must end well."""
        return run_well(drivers, shop, self.table, self.number)

    def assert_same(self, shop: Lakehouse, report: JobReport) -> None:
        """Tables, ledger, certificates and report are those of the run that nobody killed."""
        end = outcome(shop.paths, self.table)
        assert {part: end[part] for part in end} == self.end
        assert set(losers(shop.paths, self.table)) <= {"intent"}
        said = {name: getattr(report, name) for name in ("batch_seq", "version", "certified_version", "table_rows")}
        assert said == {name: getattr(self.report, name) for name in said}
        assert report.rows.are_conserved
        if report.outcome == Outcome.COMMITTED:
            assert report.rows == self.report.rows

    def wasted(self, shop: Lakehouse) -> set[int]:
        """How many attempts more than without a death each file of the batch took, as the ledger counts them."""
        files = {path for path, number, *_ in self.end["files"] if number == self.batch_seq}
        now = tries(shop, self.table)
        assert {path: now[path] for path in now if path not in files}.items() <= self.tries.items()
        return {now[path] - self.tries[path] for path in files}


def undisturbed(drivers: Drivers, shop: Lakehouse, table: str, number: int = 1) -> Undisturbed:
    """Run a batch that nobody kills; the lakehouse as it was is kept beside it."""
    before = copy_lakehouse(shop, shop.folder.parent / f"before_{table}")
    report = run_well(drivers, shop, table, number)
    return Undisturbed(table, number, before, report, outcome(shop.paths, table), tries(shop, table))


def run_well(drivers: Drivers, shop: Lakehouse, table: str, number: int = 1) -> JobReport:
    """Run the table's driver; it must end well."""
    ended = drivers.run(shop, table, number)
    assert ended.code == ExitCode.OK, ended.said
    assert ended.report is not None
    return ended.report


def tries(shop: Lakehouse, table: str) -> dict[str, int]:
    """Landing file -> how often it was tried, as `lakehouse files` tells it."""
    return {state.path: state.tries for state in states(shop.paths, table)}


def wait_for_the_server(shop: Lakehouse, table: str, report: JobReport) -> None:
    """Wait until the server is done with what it wrote for a dead driver, whose batch another one has ended since."""
    if report.outcome == Outcome.COMMITTED:
        wait_for(lambda: _not_in_the_log(shop.paths.table(table)))
        time.sleep(1)  # the dead driver's commit would come right after its files


def _not_in_the_log(table: Path) -> set[str]:
    """Data files in the folder of a table that no version of it names."""
    named = {name for commit in commits_after(table, -1) for name in commit.added}
    return {file.name for file in table.glob("*.parquet")} - named


def assert_killed(ended: Ended) -> None:
    """The process came to its place, died there, and left no report."""
    assert ended.code == -signal.SIGKILL, ended.said
    assert ended.report is None

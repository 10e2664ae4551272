"""A disk that is really full: runs say so in their first line, and go on once there is room. No row is lost or doubled.

The disks are small ones of their own (tmpfs), which takes the right to mount; where it is missing, all of this runs in
a user namespace.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.clone import CLONE
from millrace.contracts.file_status import FileStatus
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.control.landing.file_states import file_states
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.errors import ExitCode, Outcome
from millrace.paths import LakehousePaths
from millrace_spark.runtime.entrypoint import run_and_report
from tests.support.lakehouse import RUN, Lakehouse, order
from tests.support.spark.shared_server import HOME
from tests.support.storage.small_disk import PAGE, SmallDisk, may_mount, small_disk

pytestmark = pytest.mark.slow

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")
MAY_MOUNT = may_mount()
needs_disks = pytest.mark.skipif(not MAY_MOUNT, reason="this user may not mount a disk; a user namespace is tried")
FOLDERS = {
    "bronze": lambda paths: paths.table(BRONZE),
    "quarantine": lambda paths: paths.quarantine(BRONZE),
    "batches": lambda paths: paths.ops("batches"),
    "files": lambda paths: paths.ops("files"),
    "gates": lambda paths: paths.ops("gates"),
    "leases": lambda paths: paths.leases,
}
"""What a bronze run writes to; each is a disk of its own once."""
MOST_PAGES = 200


def deliver(shop: Lakehouse, *numbers: int) -> None:
    for number in numbers:
        shop.deliver(1, f"{number}.json", [order(number, number), "{broken"])


def assert_bronze_holds(shop: Lakehouse, *numbers: int) -> None:
    """Every record is in bronze or in its quarantine, once, and the ledger says so."""
    assert shop.rows(BRONZE, "order_id") == [(f"o{number}",) for number in numbers]
    assert sorted(row["source"][-6:] for row in shop.quarantine(BRONZE)) == [f"{number}.json" for number in numbers]
    states = file_states(Ledger(shop.paths), BRONZE, table_id(shop.paths.table(BRONZE)))
    told = [(state.status, state.rows and (state.rows.read, state.rows.written)) for state in states]
    assert told == [(FileStatus.LOADED, (2, 1))] * len(numbers)


def assert_says_what_to_do(report: JobReport, folder: Path) -> None:
    """The first line tells a person that the disk is full, and which; the second one what to do."""
    assert (report.outcome, report.exit_code) == (Outcome.DISK_FULL, ExitCode.DISK_FULL), report.message
    first, way_out = report.message.splitlines()
    assert f"{report.table}: the disk is full: no space left for {folder}" in first
    assert "Make room there, then run the same again" in way_out


@needs_disks
@pytest.mark.parametrize(
    "place", [pytest.param(name, marks=[] if name == "bronze" else pytest.mark.faults) for name in FOLDERS]
)
def test_a_full_disk_under_any_folder_of_a_run_is_named_and_with_room_the_run_goes_on(
    lakehouse: Lakehouse, place: str
) -> None:
    with small_disk(FOLDERS[place](lakehouse.paths)) as disk:
        deliver(lakehouse, 1)
        assert lakehouse.run(BRONZE).outcome is Outcome.COMMITTED
        deliver(lakehouse, 2)
        disk.fill_up_to(free_pages=0)
        assert_says_what_to_do(lakehouse.run(BRONZE), disk.folder)

        disk.grow()
        again = lakehouse.run(BRONZE)

        assert again.exit_code is ExitCode.OK, again.message
        assert again.certified_version == again.version
        assert_bronze_holds(lakehouse, 1, 2)
        assert not list(lakehouse.paths.leases.glob(".bronze*")), "no lease is left half written"


@needs_disks
@pytest.mark.faults
def test_a_report_that_cannot_be_saved_ends_the_run_as_full_and_the_next_one_finds_all_done(
    lakehouse: Lakehouse,
) -> None:
    deliver(lakehouse, 1)
    args = lakehouse.args(BRONZE)
    with small_disk(args.report.parent) as disk:
        disk.fill_up_to(free_pages=0)
        report = run_and_report(Job.BRONZE_INGEST, RUN[Job.BRONZE_INGEST], args)
        assert_says_what_to_do(report, disk.folder)
        assert [path.name for path in disk.folder.iterdir()] == [".ballast"]
    assert lakehouse.run(BRONZE).outcome is Outcome.NO_OP
    assert_bronze_holds(lakehouse, 1)


@pytest.fixture
def on_small_disk(lakehouse: Lakehouse) -> Iterator[tuple[Lakehouse, SmallDisk]]:
    """A lakehouse whose root is a disk of its own, with one loaded file."""
    with small_disk(lakehouse.folder / "lake") as disk:
        deliver(lakehouse, 1)
        for report in lakehouse.run_all(1, *TABLES):
            assert report.outcome is Outcome.COMMITTED, report.message
        yield lakehouse, disk


@needs_disks
@pytest.mark.faults
def test_runs_that_get_a_little_further_each_time_end_in_the_right_tables(
    on_small_disk: tuple[Lakehouse, SmallDisk],
) -> None:
    shop, disk = on_small_disk
    deliver(shop, 2, 3)
    refused = {table: run_with_ever_more_room(shop, disk, table) for table in TABLES}
    assert min(refused.values()) >= 2, refused
    disk.grow()
    for report in shop.run_all(1, *TABLES):
        assert (report.outcome, report.certified_version) == (Outcome.NO_OP, report.version), report.message
    assert_bronze_holds(shop, 1, 2, 3)
    assert shop.rows(SILVER, "order_id", "amount") == [("o1", 1), ("o2", 2), ("o3", 3)]
    assert shop.rows(GOLD, "orders", "revenue") == [(3, 6)]


def run_with_ever_more_room(shop: Lakehouse, disk: SmallDisk, table: str) -> int:
    """Run a table with no free page, then with a few, until it ends well; returns how often it did not."""
    for tried, pages in enumerate(range(MOST_PAGES)):
        disk.fill_up_to(pages)
        report = shop.run(table)
        if report.exit_code is ExitCode.OK:
            return tried
        assert_says_what_to_do(report, shop.paths.root)
        assert disk.free <= pages * PAGE
    raise AssertionError("it never ended well")


@needs_disks
@pytest.mark.faults
def test_the_command_says_it_too_where_neither_its_drivers_log_nor_its_reports_can_be_written(
    on_small_disk: tuple[Lakehouse, SmallDisk],
) -> None:
    shop, disk = on_small_disk
    deliver(shop, 2)
    disk.fill_up_to(free_pages=0)
    full = lakehouse_run(shop)
    assert full.returncode == ExitCode.DISK_FULL, full.stdout + full.stderr
    assert f"the disk is full: no space left for {LakehousePaths(disk.folder).root}" in full.stderr.splitlines()[0]
    assert "Traceback" not in full.stderr
    disk.grow()
    again = lakehouse_run(shop)
    assert again.returncode == ExitCode.OK, again.stdout + again.stderr
    assert_bronze_holds(shop, 1, 2)


def lakehouse_run(shop: Lakehouse) -> subprocess.CompletedProcess[str]:
    """`lakehouse run` without a warm server: Spark in the driver's own process."""
    command = [Path(sys.executable).parent / "lakehouse", "run", "--interval", "2013-01-01"]
    known = {**clean_environment(), **shop.environment()}
    return subprocess.run(command, env=known, cwd=CLONE, capture_output=True, text=True, timeout=300, check=False)


if not MAY_MOUNT:

    @pytest.mark.faults
    def test_all_of_this_in_a_user_namespace() -> None:
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
            pytest.skip("this user may neither mount a disk nor make a user namespace")
        known = {name: value for name, value in clean_environment().items() if name != HOME}
        command = ["unshare", "-rm", sys.executable, "-m", "pytest", "-q", __file__]
        ended = subprocess.run(command, env=known, cwd=CLONE, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout
        assert "passed" in ended.stdout
        assert "skipped" not in ended.stdout

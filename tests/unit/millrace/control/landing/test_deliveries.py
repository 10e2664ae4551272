"""The intervals of a feed that have files which no run has loaded, and the state of each file in the ledger."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.contracts.file_status import FileStatus
from millrace.contracts.interval import Interval
from millrace.contracts.job.report import FileRows, RowCounts
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.control.landing.deliveries import folders_of
from millrace.control.landing.file_states import file_states
from millrace.control.landing.inspection import inspect
from millrace.control.landing.landing import interval_folder
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import FileFact, Intent, Stream, Winner
from millrace.control.planning.planner import Planner
from millrace.errors import NotDeliveredError
from millrace.settings import Settings
from tests.support.deliveries import AN_ORDER, Deliver
from tests.support.documents.specs import bronze_spec, catalog_of
from tests.support.ledger.delta_tables import day, intent_of, judge, load_batch
from tests.support.listing import list_files

PATHS = {
    "date={interval_start:%Y-%m-%d}": timedelta(days=1),
    "{interval_start:%Y/%m/%d}": timedelta(days=1),
    "y={interval_start:%Y}/d={interval_start:%j}": timedelta(days=1),
    "{interval_start:%Y-%m-%d}/{interval_start:%H}": timedelta(hours=1),
    "{interval_start:%Y%m%dT%H%M}Z/./": timedelta(minutes=1),
    "{interval_start:%Y}/{interval_start:%Y-%m-%d}": timedelta(days=1),
    "{interval_start.year}/{interval_start.month}/{interval_start.day}": timedelta(days=1),
    "y={interval_start:%Y}/{interval_start.month}-{interval_start.day}T{interval_start.hour}": timedelta(hours=1),
}


def source_of(path: str) -> LandingSource:
    return LandingSource(landing="eu/orders", path=path, format="json")


@given(
    path=st.sampled_from(sorted(PATHS)),
    moment=st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)),  # noqa: DTZ001
)
def test_the_interval_of_a_folder_is_that_of_the_run_that_reads_it(path: str, moment: datetime) -> None:
    length = PATHS[path]
    start = (
        datetime(1970, 1, 1, tzinfo=UTC)
        + (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // length * length
    )
    interval = Interval(start=start, end=start + length)
    folders = folders_of(source_of(path))
    assert folders is not None
    assert folders.interval(f"{interval_folder(folders.source, interval)}/deep/a.json") == interval


@pytest.mark.parametrize(
    "path",
    [".", "{interval_start.year}{interval_start.month}", "{interval_end:%Y-%m-%d}", "{interval_start:%B}"],
)
def test_a_path_without_digits_of_a_time_has_no_intervals(path: str) -> None:
    assert folders_of(source_of(path)) is None


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("{interval_start:%Y}/{interval_start.month}/{interval_start.day}", "2025/07/01"),
        *(
            ("date={interval_start:%Y-%m-%d}", folder)
            for folder in ("date=2013-13-01", "date=2013-1-1", "other", "date=2013-01-01x")
        ),
    ],
)
def test_a_folder_that_no_run_reads_has_no_interval(path: str, folder: str) -> None:
    folders = folders_of(source_of(path))
    assert folders is not None
    assert folders.interval(f"eu/orders/{folder}/a") is None


def test_every_unloaded_file_of_every_day_is_due(root: Path, landing: Path, deliver: Deliver) -> None:
    spec = bronze_spec(source={"landing": "orders", "files": "*.json", "format": "json", "min_age": "60 minutes"})
    folders, place = folders_of(spec.landing_source), LocalLanding(str(landing))
    planner = Planner(catalog_of(spec), Settings(root=root, landing=str(landing)))
    assert folders is not None
    with pytest.raises(NotDeliveredError, match="no landing folder"):
        planner.due_intervals(spec, folders)
    for number in (1, 2, 3):
        os.utime(deliver("a.json", number=number), (1, 1))
    deliver("young.json", number=4)
    deliver("other.txt", number=5)
    assert planner.due_intervals(spec, folders) == ((day(1), day(2), day(3)), 1)
    files = tuple(inspect(file, place, spec) for number in (1, 2) for file in list_files(spec, place, day(number)))
    judge(root, spec, load_batch(root, spec, files=files).version)
    assert planner.due_intervals(spec, folders) == ((day(3),), 1)
    os.utime(deliver("late.json", number=1), (time.time() - 7200, time.time() - 7200))
    assert planner.due_intervals(spec, folders) == ((day(1), day(3)), 1)
    os.utime(deliver("a.json", number=2), ns=(7, 7))
    assert planner.due_intervals(spec, folders) == ((day(1), day(3)), 1)
    os.utime(deliver("a.json", AN_ORDER.replace("1", "2"), number=2), ns=(7, 7))
    assert planner.due_intervals(spec, folders) == ((day(1), day(3)), 1), "a touched file is read once"
    load_batch(root, spec, closed=False)
    assert planner.due_intervals(spec, folders) == ((day(1), day(2), day(3)), 1), (
        "an incomplete batch of the second day"
    )


ORDERS = Stream("bronze.orders")
FILE = FileFact(path="orders/date=2013-01-01/a.json", size=9, mtime_ns=1, checksum="aa")
ROWS = FileRows(read=5, written=3, rescued=1, quarantined=1, dropped=1)
ROW_COUNTS = RowCounts(read=5, applied=3, quarantined=1, dropped=1, inserted=3)


def attempt(ledger: Ledger, batch_seq: int = 1, *files: FileFact) -> Intent:
    """Record an intent to load the files, which may never commit."""
    intent = intent_of("id", batch_seq, stream=ORDERS)
    ledger.record_intent(intent, files or (FILE,))
    return intent


def state(ledger: Ledger) -> tuple[FileStatus, str, int, int | None, int | None, FileRows | None]:
    """Return status, reason, tries, batch, version and rows of the only file in the ledger."""
    [only] = file_states(ledger, "bronze.orders", "id")
    return only.status, only.reason, only.tries, only.batch_seq, only.version, only.rows


def test_a_file_is_loaded_as_soon_as_its_attempt_won_and_its_rows_follow(ledger: Ledger) -> None:
    assert file_states(ledger, "bronze.orders", "id") == []
    attempt(ledger)
    assert state(ledger) == (FileStatus.PLANNED, "", 1, None, None, None)
    [planned] = file_states(ledger, "bronze.orders", "id")
    assert (planned.size, planned.checksum, planned.interval) == (9, "aa", day(1))
    winner = Winner(attempt(ledger), 7)
    attempt(ledger)
    ledger.record_committed([winner])
    assert state(ledger) == (FileStatus.LOADED, "", 3, 1, 7, None)
    ledger.record_closed(winner, ROW_COUNTS, {FILE.path: ROWS})
    assert state(ledger) == (FileStatus.LOADED, "", 3, 1, 7, ROWS)

    attempt(ledger, 2, *(replace(FILE, path=name) for name in ("b.json", "a.json")))
    ledger.record_intent(intent_of("other id", 1, stream=ORDERS), [replace(FILE, path="c.json")])
    assert [found.path for found in file_states(ledger, "bronze.orders", "id")] == ["a.json", "b.json", FILE.path]


def test_a_broken_file_is_failed_with_its_reason_and_an_unreachable_one_is_not_until_it_is_loaded(
    ledger: Ledger,
) -> None:
    def record(event: FileEvent, **changes: Any) -> None:
        ledger.record_files(event, "bronze.orders", "id", day(1), [replace(FILE, **changes)])

    record(FileEvent.UNREACHABLE, checksum="", defect="HTTP 503")
    assert state(ledger) == (FileStatus.UNREACHABLE, "HTTP 503", 0, None, None, None)
    assert ledger.failures("bronze.orders", "id") == {}
    record(FileEvent.FAILED, defect="truncated gzip", checksum="bad")
    assert state(ledger) == (FileStatus.FAILED, "truncated gzip", 1, None, None, None)
    [failed] = file_states(ledger, "bronze.orders", "id")

    winner = Winner(attempt(ledger), 2)
    ledger.record_committed([winner])
    assert state(ledger) == (FileStatus.LOADED, "", 2, 1, 2, None)
    [loaded] = file_states(ledger, "bronze.orders", "id")
    assert (loaded.checksum, loaded.seen_at) == ("aa", failed.seen_at)
    ledger.record_closed(winner, ROW_COUNTS, {FILE.path: ROWS})

    record(FileEvent.FAILED, defect="truncated gzip", checksum="bad")
    assert state(ledger) == (FileStatus.FAILED, "truncated gzip", 3, 1, 2, ROWS)
    record(FileEvent.UNREACHABLE, mtime_ns=2, defect="HTTP 503")
    assert state(ledger) == (FileStatus.UNREACHABLE, "HTTP 503", 3, 1, 2, ROWS)
    record(FileEvent.SEEN, mtime_ns=2)
    assert state(ledger) == (FileStatus.LOADED, "", 3, 1, 2, ROWS)

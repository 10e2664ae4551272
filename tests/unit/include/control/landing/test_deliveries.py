"""The intervals of a feed that have files which no run has loaded."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.contracts.interval import Interval
from include.contracts.spec.bronze_sources import LandingSource
from include.control.landing.deliveries import folders_of
from include.control.landing.inspection import inspect
from include.control.landing.landing import interval_folder
from include.control.landing.on_disk import LocalLanding
from include.control.planning.planner import Planner
from include.errors import NotDeliveredError
from include.settings import Settings
from tests.support.deliveries import AN_ORDER, Deliver
from tests.support.documents.specs import bronze_spec, catalog_of
from tests.support.ledger.delta_tables import day, judge, load_batch
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
    [
        ".",
        "all",
        "{year}",
        "{interval_start}",
        "{interval_start.year}{interval_start.month}",
        "{interval_end:%Y-%m-%d}",
        "{interval_start:%B}",
    ],
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


def test_an_incomplete_batch_is_due_for_its_own_interval(root: Path, landing: Path, deliver: Deliver) -> None:
    spec = bronze_spec()
    folders, planner = (
        folders_of(spec.landing_source),
        Planner(catalog_of(spec), Settings(root=root, landing=str(landing))),
    )
    assert folders is not None
    deliver("a.json").unlink()
    load_batch(root, spec, closed=False)
    assert planner.due_intervals(spec, folders) == ((day(1),), 0)

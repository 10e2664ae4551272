"""The stream of an interval depends on its landing folder alone, and nothing else than the folder decides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.contracts.interval import Interval
from include.control.landing.landing import interval_folder
from include.control.landing.streams import INTERVAL_STREAMS, all_streams, concurrency_of, stream_of
from include.control.log.batch import Stream
from tests.support.documents.specs import bronze_spec, silver_spec

FIRST = datetime(1999, 1, 1, tzinfo=UTC)
STARTS = st.integers(0, 100 * 366 * 24).map(lambda hours: FIRST + timedelta(hours=hours))
PATHS = (
    "date={interval_start:%Y-%m-%d}",
    "{interval_start:%Y}/{interval_start:%j}",
    "{interval_start:%B}",
    "h{interval_start:%Y%m%d%H}",
)


@given(st.sampled_from(PATHS), STARTS, st.timedeltas(timedelta(), timedelta(days=1)))
def test_runs_that_load_one_folder_have_one_stream(path: str, start: datetime, later: timedelta) -> None:
    spec = bronze_spec(source={"landing": "orders", "format": "json", "path": path}, concurrent_by="interval")
    starts = (start, start + later)
    folders = {interval_folder(spec.landing_source, Interval(start=at, end=at + later + timedelta(1))) for at in starts}
    streams = {stream_of(spec, at) for at in starts}
    assert len(streams) <= len(folders)
    assert streams <= set(all_streams(spec.table))


@pytest.mark.parametrize(
    ("path", "step"),
    [
        (PATHS[0], timedelta(days=1)),
        (PATHS[0], timedelta(weeks=1)),
        (PATHS[3], timedelta(hours=1)),
    ],
)
def test_intervals_that_follow_one_another_have_different_streams(path: str, step: timedelta) -> None:
    spec = bronze_spec(source={"landing": "orders", "format": "json", "path": path}, concurrent_by="interval")
    starts = [datetime(2013, 1, 1, tzinfo=UTC) + number * step for number in range(4)]
    assert len({stream_of(spec, start) for start in starts}) == len(starts)


def test_a_table_takes_one_batch_at_a_time_unless_its_spec_says_otherwise() -> None:
    start = datetime(2013, 1, 1, tzinfo=UTC)
    for spec in (bronze_spec(), silver_spec()):
        assert stream_of(spec, start) == Stream(spec.table)
        assert concurrency_of(spec) == "none"
    assert len(set(all_streams("bronze.orders"))) == INTERVAL_STREAMS + 1


def test_streams_affect_no_row_of_a_table() -> None:
    assert bronze_spec(concurrent_by="interval").spec_hash == bronze_spec().spec_hash

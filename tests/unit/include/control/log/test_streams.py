"""The stream of an interval depends on its landing folder alone, and nothing else than the folder decides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from include.contracts.interval import Interval
from include.control.landing.landing import interval_folder
from include.control.log.batch import Stream
from include.control.log.streams import INTERVAL_STREAMS, concurrency_of, stream_of, streams_of
from tests.support.documents.specs import bronze_spec, silver_spec

FIRST = datetime(1999, 1, 1, tzinfo=UTC)
STARTS = st.integers(0, 100 * 366 * 24).map(lambda hours: FIRST + timedelta(hours=hours))
PATHS = (
    "date={interval_start:%Y-%m-%d}",
    "{interval_start:%Y}/{interval_start:%j}",
    "{interval_start:%B}",
    "h{interval_start:%Y%m%d%H}",
)


@settings(max_examples=40)
@given(st.sampled_from(PATHS), STARTS, st.timedeltas(timedelta(), timedelta(days=1)))
def test_runs_that_load_one_folder_have_one_stream(path: str, start: datetime, later: timedelta) -> None:
    spec = bronze_spec(source={"landing": "orders", "format": "json", "path": path}, concurrent_by="interval")
    starts = (start, start + later)
    folders = {interval_folder(spec.landing_source, Interval(start=at, end=at + later + timedelta(1))) for at in starts}
    streams = {stream_of(spec, at) for at in starts}
    assert len(streams) <= len(folders)
    assert streams <= set(streams_of(spec))


def test_intervals_that_follow_one_another_have_different_streams() -> None:
    for path, days in ((PATHS[0], 1), (PATHS[0], 7), (PATHS[3], 1 / 24)):
        spec = bronze_spec(source={"landing": "orders", "format": "json", "path": path}, concurrent_by="interval")
        starts = [FIRST + number * timedelta(days=days) for number in range(4)]
        assert len({stream_of(spec, start) for start in starts}) == len(starts)


def test_a_table_takes_one_batch_at_a_time_unless_its_spec_says_otherwise() -> None:
    for spec in (bronze_spec(), silver_spec()):
        assert stream_of(spec, FIRST) == Stream(spec.table)
        assert concurrency_of(spec) == "none"
    assert len(set(streams_of(bronze_spec(concurrent_by="interval")))) == INTERVAL_STREAMS


def test_streams_affect_no_row_of_a_table() -> None:
    assert bronze_spec(concurrent_by="interval").spec_hash == bronze_spec().spec_hash
    one, *others = (
        silver_spec(source=None, sources=[{"table": "bronze.a", "partitions": values}], concurrent_by=column)
        for values, column in (((), None), (("1",), None), (("1", "2"), "order_id"))
    )
    assert [other.spec_hash for other in others] == [one.spec_hash] * 2

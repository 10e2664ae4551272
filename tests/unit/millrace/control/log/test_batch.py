"""Batches: their numbers follow the log, their tokens decide who won; their stream depends on their interval alone."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from millrace.contracts.interval import Interval
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.landing import interval_folder
from millrace.control.log.batch import (
    BatchSources,
    FileFact,
    Intent,
    Stream,
    StreamPosition,
    Winner,
    files_digest,
    winner_of,
)
from millrace.control.log.delta_log import Commit
from millrace.control.log.streams import stream_of, streams_of
from tests.support.documents.specs import bronze_spec, silver_spec
from tests.support.ledger.delta_tables import FLIGHTS, day, intent_of
from tests.support.texts import ODD_TEXTS


def commit_of(intent: Intent, version: int = 7) -> Commit:
    metadata = json.loads(intent.user_metadata())["millrace"]
    return Commit(version, txns={intent.app_id: intent.batch_seq}, metadata=metadata)


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_an_intent_survives_its_commit_and_the_next_batch_has_the_next_number(text: str) -> None:
    sources = BatchSources(
        ranges={"bronze.a": (None, 3), "bronze.b": (10**9, 10**9)},
        files=2,
        files_digest=text,
        snapshot_at=day(2).start,
        reprocess=True,
    )
    intent = intent_of(text, 5, sources=sources).model_copy(update={"run_id": text})
    winner = winner_of(commit_of(intent), intent.app_id)
    assert winner == Winner(intent, 7)
    assert (winner.batch_seq, winner.token) == (5, intent.token)
    position = StreamPosition("id", 9, last=winner)
    assert (position.next_seq, position.last_sources) == (6, sources)


def test_a_commit_of_another_stream_or_without_a_number_or_metadata_is_no_batch() -> None:
    commit = commit_of(intent_of("id"))
    assert winner_of(commit, FLIGHTS.app_id)
    assert winner_of(commit, Stream("silver.flights", "other").app_id) is None
    assert winner_of(replace(commit, operation="OPTIMIZE", txns={}), FLIGHTS.app_id) is None
    assert winner_of(replace(commit, metadata={}), FLIGHTS.app_id) is None


def test_an_intent_without_a_time_zone_is_refused() -> None:
    naive = datetime(2013, 1, 1)  # noqa: DTZ001  what is refused
    with pytest.raises(ValidationError, match="no time zone"):
        Intent.model_validate({**intent_of("id").model_dump(), "interval_start": naive})


def test_the_digest_of_files_changes_with_a_name_and_a_content_and_not_with_their_order_or_times() -> None:
    file = FileFact(path="a.json", size=1, mtime_ns=1, checksum="aa")
    others = [replace(file, **change) for change in ({"path": "b.json"}, {"checksum": "bb"})]
    digests = {files_digest(files) for files in [(), (file,), *((other,) for other in others), (file, *others)]}
    assert len(digests) == 5
    assert files_digest((*others, replace(file, mtime_ns=2))) == files_digest((file, *others))


FIRST = datetime(1999, 1, 1, tzinfo=UTC)
STARTS = st.integers(0, 100 * 366 * 24).map(lambda hours: FIRST + timedelta(hours=hours))
PATHS = (
    "date={interval_start:%Y-%m-%d}",
    "{interval_start:%Y}/{interval_start:%j}",
    "{interval_start:%B}",
    "h{interval_start:%Y%m%d%H}",
)


def spec_at(path: str) -> BronzeSpec:
    return bronze_spec(source={"landing": "orders", "format": "json", "path": path}, concurrent_by="interval")


@settings(max_examples=40)
@given(st.sampled_from(PATHS), STARTS, st.timedeltas(timedelta(), timedelta(days=1)))
def test_runs_that_load_one_folder_have_one_stream(path: str, start: datetime, later: timedelta) -> None:
    spec = spec_at(path)
    starts = (start, start + later)
    folders = {interval_folder(spec.landing_source, Interval(start=at, end=at + later + timedelta(1))) for at in starts}
    streams = {stream_of(spec, at) for at in starts}
    assert len(streams) <= len(folders)
    assert streams <= set(streams_of(spec))


def test_intervals_that_follow_one_another_have_different_streams() -> None:
    for path, days in ((PATHS[0], 1), (PATHS[0], 7), (PATHS[3], 1 / 24)):
        starts = [FIRST + number * timedelta(days=days) for number in range(4)]
        assert len({stream_of(spec_at(path), start) for start in starts}) == len(starts)


def test_streams_affect_no_row_of_a_table() -> None:
    assert bronze_spec(concurrent_by="interval").spec_hash == bronze_spec().spec_hash
    one, *others = (
        silver_spec(source=None, sources=[{"table": "bronze.a", "partitions": values}], concurrent_by=column)
        for values, column in (((), None), (("1",), None), (("1", "2"), "order_id"))
    )
    assert [other.spec_hash for other in others] == [one.spec_hash] * 2

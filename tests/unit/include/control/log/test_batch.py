"""Batches: their numbers follow the log, their tokens decide who won, and their intents survive the commit."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

import pytest
from pydantic import ValidationError

from include.control.log.batch import (
    BatchSources,
    FileFact,
    Intent,
    Stream,
    StreamPosition,
    Winner,
    files_digest,
    winner_of,
)
from include.control.log.delta_log import Commit
from tests.support.ledger.delta_tables import FLIGHTS, day, intent_of
from tests.support.texts import ODD_TEXTS


def commit_of(intent: Intent, version: int = 7) -> Commit:
    metadata = json.loads(intent.user_metadata())["millrace"]
    return Commit(version, txns={intent.app_id: intent.batch_seq}, metadata=metadata)


def test_a_stream_is_one_application_of_delta() -> None:
    assert Stream("silver.flights").app_id == "millrace/silver.flights/main"
    assert Stream("bronze.events", "airport-JFK").app_id == "millrace/bronze.events/airport-JFK"
    assert intent_of("id", stream=Stream("bronze.events", "b")).app_id == Stream("bronze.events", "b").app_id


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


def test_the_first_batch_of_a_stream_has_the_number_one() -> None:
    position = StreamPosition("id", version=0)
    assert (position.next_seq, position.last_sources) == (1, BatchSources())


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

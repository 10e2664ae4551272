"""Runs that wait for a lease get it in the order of their arrival, and leases in a folder of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from embedded.servers.s3 import Bucket
from millrace.contracts.lake_path import S3Path
from millrace.control.leases.claim import LeaseClaim
from millrace.control.leases.leases import Leases
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.states.table_state import StatePart, TableStates
from millrace.control.storage.objects import LocalObjectStore
from millrace.errors import LeaseLostError
from millrace.paths import LakehousePaths
from tests.support.ledger.event_race import EVENTS, event, word_counts
from tests.support.ledger.lease_holder import STREAM, TABLE
from tests.support.storage.faulty_s3 import FaultyS3
from tests.support.waiting import wait_for

SOON_S, LONG_S = 0.3, 60.0
WRITERS, EACH, ROUNDS = 3, 3, 20
SOON = timedelta(seconds=SOON_S)


def note(wanted: str, *, at: int, lasts_s: float, holder: str = "run two") -> tuple[str, bytes]:
    """Return the key and the body of a note of a run that began to wait at that time."""
    return f"{TABLE}.waiting-{at:020d}-{at}-{wanted}", LeaseClaim(holder, str(at), lasts_s=lasts_s).to_bytes()


@pytest.mark.parametrize("one_writer", [False, True])
def test_leases_are_taken_in_the_order_of_the_requests_and_maintenance_sees_the_waiting_batches(
    store: LocalObjectStore, first: Leases, one_writer: bool
) -> None:
    had: list[tuple[str, int]] = []

    def waiting() -> int:
        return len(store.keys(f"{TABLE}.waiting-"))

    def work(name: str) -> None:
        leases = Leases(store, name, patience_s=LONG_S, one_writer=one_writer)
        with leases.table(TABLE) if name == "table" else leases.stream(TABLE, STREAM):
            had.append((name, waiting()))

    with ThreadPoolExecutor(4) as runs, first.table(TABLE):
        assert first.waiting_batches(TABLE) == ""
        for number, name in enumerate(["b", "table", "a", "c"], start=1):
            runs.submit(work, name)
            wait_for(lambda number=number: waiting() == number)
        assert first.waiting_batches(TABLE) == "a, b, c", "waiting maintenance is no waiting batch"
        assert first.waiting_batches("silver.flights2") == ""
    assert had == [("b", 3), ("table", 2), ("a", 1), ("c", 0)], "who has its lease waits no more"
    assert store.keys("") == []


@pytest.mark.parametrize(("waits_for", "wanted"), [(STREAM, STREAM), ("table", STREAM), (STREAM, "table")])
def test_no_request_overtakes_a_waiting_run_even_if_the_lease_is_free(
    store: LocalObjectStore, first: Leases, waits_for: str, wanted: str
) -> None:
    store.put_if_absent(*note("table" if waits_for == "table" else f"stream-{waits_for}", at=1, lasts_s=LONG_S))
    with pytest.raises(LeaseLostError), first.table(TABLE) if wanted == "table" else first.stream(TABLE, wanted):
        pytest.fail("it went first")


def test_neither_a_run_that_waits_for_another_stream_nor_a_killed_one_blocks(
    store: LocalObjectStore, first: Leases
) -> None:
    store.put_if_absent(*note("stream-another", at=1, lasts_s=LONG_S))
    store.put_if_absent(*note(f"stream-{STREAM}", at=2, lasts_s=0.0))
    with first.stream(TABLE, STREAM) as waited:
        assert waited.holders == ""
    wait_for(lambda: first.waiting_batches(TABLE) == "run two")
    assert [key[-14:] for key in store.keys("")] == ["stream-another"], "the note of the killed run was removed"


@pytest.fixture
def careless(proxied_bucket: Bucket, faulty: FaultyS3) -> Bucket:
    """A bucket that this process reaches as a store without conditional puts."""
    for condition in ("If-None-Match", "If-Match"):
        faulty.ignore(condition)
    return proxied_bucket


def lost_events(bucket: Bucket, lease_store: Path | None = None) -> int:
    """Let several writers append events at the same time, and return the number of lost events."""
    path, together = S3Path(f"s3://{bucket.name}/{uuid4().hex}/ops/events"), threading.Barrier(WRITERS)

    def append(number: int) -> None:
        table = OpsTable(path, EVENTS, lease_store=lease_store)
        for word in range(EACH):
            together.wait(60)
            table.append([event(TABLE, f"{number}-{word}")])

    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(append, range(WRITERS)))
    return WRITERS * EACH - len(word_counts(path, TABLE))


def test_only_with_the_setting_a_table_has_one_writer_for_all_streams(tmp_path: Path) -> None:
    usual = LakehousePaths(tmp_path / "usual")
    first, second = (lakehouse_leases(usual, name, SOON) for name in ("one", "two"))
    with first.stream(TABLE, "main"), second.stream(TABLE, "other"):
        assert len(list(usual.leases.glob("silver*"))) == 2  # type: ignore[union-attr]
    paths = LakehousePaths(tmp_path / "lake", lease_store=tmp_path / "shared")
    first, second = (lakehouse_leases(paths, name, SOON) for name in ("one", "two"))
    with first.stream(TABLE, "main"):
        assert [file.name for file in (tmp_path / "shared").glob("silver*")] == [f"{TABLE}.table"]
        for wanted in (second.stream(TABLE, "other"), second.table(TABLE)):
            with pytest.raises(LeaseLostError, match="held by one"), wanted:
                pytest.fail("both held it")
        with second.stream("silver.planes", "main") as waited:
            assert waited.holders == ""
    assert not (tmp_path / "lake").exists()


def test_only_with_the_setting_such_a_store_loses_no_events_of_the_ledger(
    careless: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(lost_events(careless) for _ in range(ROUNDS))
    assert lost_events(careless, tmp_path / "shared") == 0
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", careless.endpoint)
    assert lost_events(careless) == 0, "conditional puts suffice"


class Counted(StatePart):
    number: int


def test_with_the_setting_such_a_store_loses_no_change_of_a_state(careless: Bucket, tmp_path: Path) -> None:
    paths = LakehousePaths(S3Path(f"s3://{careless.name}/{uuid4().hex}"), lease_store=tmp_path / "shared")
    first, second = TableStates(paths), TableStates(paths)
    for states in (first, second, first):
        states.change(TABLE, (Counted, lambda kept: Counted(table_id="1", number=kept.number + 1 if kept else 1)))
    assert second.read(TABLE, Counted) == Counted(table_id="1", number=3)

"""Runs that wait for a lease get it in the order of their arrival, and leases in a folder of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from embedded.servers.s3 import Bucket
from include.contracts.lake_path import S3Path
from include.control.leases.claim import LeaseClaim
from include.control.leases.leases import Leases
from include.control.leases.store import lakehouse_leases
from include.control.ledger.ops_table import OpsTable
from include.control.ledger.states.table_state import StatePart, TableStates
from include.control.storage.objects import LocalObjectStore
from include.errors import LeaseLostError
from include.paths import LakehousePaths
from tests.support.ledger.event_race import EVENTS, event, word_counts
from tests.support.ledger.lease_holder import STREAM, STREAM_KEY, TABLE
from tests.support.storage.faulty_s3 import FaultyS3
from tests.support.waiting import wait_for

SOON_S, LONG_S = 0.3, 60.0
WRITERS, EACH, ROUNDS = 3, 3, 20
SOON, LATER = timedelta(seconds=SOON_S), timedelta(seconds=LONG_S)


def note(wanted: str, *, at: int, lasts_s: float, holder: str = "run two") -> tuple[str, bytes]:
    """Return the key and the body of a note of a run that began to wait at that time."""
    return f"{TABLE}.waiting-{at:020d}-{at}-{wanted}", LeaseClaim(holder, str(at), lasts_s=lasts_s).to_bytes()


def test_maintenance_sees_the_waiting_batches_and_comes_after_them(store: LocalObjectStore, first: Leases) -> None:
    patient, has_it, may_end = Leases(store, "run two", patience_s=LONG_S), threading.Event(), threading.Event()

    def work() -> None:
        with patient.stream(TABLE, STREAM):
            has_it.set()
            assert may_end.wait(LONG_S)

    batch = threading.Thread(target=work)
    with first.table(TABLE):
        assert first.waiting_batches(TABLE) == ""
        batch.start()
        wait_for(lambda: first.waiting_batches(TABLE) == "run two")
        assert first.waiting_batches("silver.flights2") == ""
    with pytest.raises(LeaseLostError), first.table(TABLE):
        pytest.fail("it went before the batch")
    assert has_it.wait(LONG_S)
    assert store.keys("") == [STREAM_KEY], "who has its lease waits no more"
    may_end.set()
    batch.join(60)
    assert store.keys("") == []


def test_leases_are_taken_in_the_order_of_the_requests(store: LocalObjectStore, first: Leases) -> None:
    order, had, asked = ["b", "table", "a", "c"], list[str](), list[threading.Thread]()

    def work(name: str) -> None:
        leases = Leases(store, name, patience_s=LONG_S)
        with leases.table(TABLE) if name == "table" else leases.stream(TABLE, STREAM):
            had.append(name)

    with first.table(TABLE):
        for number, name in enumerate(order, start=1):
            asked.append(threading.Thread(target=work, args=(name,)))
            asked[-1].start()
            wait_for(lambda number=number: len(store.keys(f"{TABLE}.waiting-")) == number)
        assert first.waiting_batches(TABLE) == "a, b, c", "waiting maintenance is no waiting batch"
    for thread in asked:
        thread.join(LONG_S)
    assert had == order


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


def test_writers_in_a_loop_get_their_share(store: LocalObjectStore) -> None:
    count, rounds, over = 5, 3, threading.Event()

    def all_others_wait() -> bool:
        return over.is_set() or len(store.keys(f"{TABLE}.waiting-")) == count - 1

    def work(number: int) -> int:
        leases, had = Leases(store, f"writer {number}", patience_s=LONG_S), 0
        while not over.is_set():
            with leases.stream(TABLE, STREAM):
                wait_for(all_others_wait)
                had += 1
            if had >= rounds:
                over.set()
        return had

    with ThreadPoolExecutor(count) as writers:
        had = list(writers.map(work, range(count)))
    assert max(had) >= rounds
    assert max(had) - min(had) <= 1, had


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


def test_with_the_setting_maintenance_sees_a_batch_that_waits(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path / "lake", lease_store=tmp_path / "shared")
    first, second = (lakehouse_leases(paths, name, LATER) for name in ("one", "two"))
    assert first.waiting_batches(TABLE) == ""
    heard: list[str] = []

    def work() -> None:
        with second.stream(TABLE, "main") as waited:
            heard.append(waited.holders)

    batch = threading.Thread(target=work)
    with first.table(TABLE):
        batch.start()
        while not first.waiting_batches(TABLE):
            assert batch.is_alive()
    batch.join(timeout=60)
    assert [who.split()[0] for who in heard] == ["one"]


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

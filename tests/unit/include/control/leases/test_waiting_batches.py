"""Runs that wait for a lease leave a note, and get the lease in the order of their arrival."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from include.control.leases.claim import LeaseClaim
from include.control.leases.leases import Leases
from include.control.storage.objects import LocalObjectStore
from include.errors import LeaseLostError
from tests.support.ledger.lease_holder import STREAM, TABLE
from tests.support.waiting import wait_for

SOON_S, LONG_S = 0.3, 60.0
STREAM_KEY = f"{TABLE}.stream-{STREAM}"


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

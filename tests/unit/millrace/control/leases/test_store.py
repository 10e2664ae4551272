"""Runs that wait for a lease get it in the order of their arrival."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from millrace.control.leases.leases import LeaseClaim, Leases
from millrace.control.storage.objects import LocalObjectStore
from millrace.errors import LeaseLostError
from tests.support.ledger.lease_holder import STREAM, TABLE
from tests.support.waiting import wait_for

SOON_S, LONG_S = 0.3, 60.0
WRITERS, EACH, ROUNDS = 3, 3, 20
SOON = timedelta(seconds=SOON_S)


def note(wanted: str, *, at: int, lasts_s: float, holder: str = "run two") -> tuple[str, bytes]:
    """Return the key and the body of a note of a run that began to wait at that time."""
    return f"{TABLE}.waiting-{at:020d}-{at}-{wanted}", LeaseClaim(holder, str(at), lasts_s=lasts_s).to_bytes()


def test_leases_are_taken_in_the_order_of_the_requests_and_maintenance_sees_the_waiting_batches(
    store: LocalObjectStore, first: Leases
) -> None:
    had: list[tuple[str, int]] = []

    def waiting() -> int:
        return len(store.keys(f"{TABLE}.waiting-"))

    def work(name: str) -> None:
        leases = Leases(store, name, patience_s=LONG_S)
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

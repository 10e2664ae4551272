"""Batches that wait for a lease say so, and maintenance lets them in."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from include.control.leases import LeaseClaim, Leases
from include.control.objects import LocalObjectStore
from include.errors import LeaseLostError
from tests.support.lease_holder import STREAM, TABLE
from tests.support.waiting import wait_for

SOON_S, LONG_S = 0.3, 60.0
STREAM_KEY = f"{TABLE}.stream-{STREAM}"


@pytest.fixture
def store(tmp_path: Path) -> LocalObjectStore:
    return LocalObjectStore(tmp_path / "leases")


@pytest.fixture
def first(store: LocalObjectStore) -> Leases:
    return Leases(store, "run one", lasts_s=LONG_S, patience_s=SOON_S)


@pytest.fixture
def second(store: LocalObjectStore) -> Leases:
    return Leases(store, "run two", lasts_s=LONG_S, patience_s=SOON_S)


def test_maintenance_is_told_which_batches_wait_and_lets_them_in(store: LocalObjectStore, first: Leases) -> None:
    patient, has_it, may_end = Leases(store, "run two", patience_s=LONG_S), threading.Event(), threading.Event()

    def work() -> None:
        with patient.stream(TABLE, STREAM):
            has_it.set()
            assert may_end.wait(LONG_S)

    batch = threading.Thread(target=work)
    with first.table(TABLE):
        assert first.batches_waiting(TABLE) == ""
        batch.start()
        wait_for(lambda: first.batches_waiting(TABLE) == "run two")
        assert first.batches_waiting("silver.flights2") == ""
    Leases(store, "run one", patience_s=LONG_S).let_batches_in(TABLE)
    assert has_it.wait(LONG_S)
    assert store.keys("") == [STREAM_KEY], "who has its lease waits no more"
    may_end.set()
    batch.join(60)
    assert store.keys("") == []


def test_maintenance_waits_for_no_batch_that_never_comes(first: Leases, store: LocalObjectStore) -> None:
    store.put_if_absent(f"{TABLE}.waiting-1", LeaseClaim("run two", "1", lasts_s=LONG_S).to_bytes())
    started = time.monotonic()
    first.let_batches_in(TABLE)
    assert SOON_S <= time.monotonic() - started < LONG_S


def test_the_note_of_a_batch_that_was_killed_while_it_waited_is_removed(first: Leases, store: LocalObjectStore) -> None:
    store.put_if_absent(f"{TABLE}.waiting-1", LeaseClaim("run two", "1", lasts_s=0.0).to_bytes())
    wait_for(lambda: first.batches_waiting(TABLE) == "")
    assert store.keys("") == []


def test_maintenance_that_waits_asks_nobody_to_give_way(store: LocalObjectStore, first: Leases, second: Leases) -> None:
    with first.table(TABLE), pytest.raises(LeaseLostError), second.table(TABLE):
        pytest.fail("both held it")
    assert first.batches_waiting(TABLE) == ""

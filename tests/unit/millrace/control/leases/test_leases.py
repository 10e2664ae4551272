"""Leases: the right to write for a short time, by any clocks; the loss of a lease does no harm."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import pytest

from millrace.control.leases import leases
from millrace.control.leases.leases import LASTS_S, LeaseClaim, Leases
from millrace.control.storage import objects
from millrace.control.storage.objects import LocalObjectStore
from millrace.errors import ExitCode, LeaseLostError, Outcome
from tests.support.ledger.lease_holder import (
    HOLDER,
    STREAM,
    STREAM_KEY,
    TABLE,
    claim_in,
    count_up,
    lease_of_other_process,
    release,
)
from tests.support.processes import run_together
from tests.support.waiting import wait_for

SOON_S, LONG_S, SHORT_S, ALIVE_S = 0.3, 60.0, 1.0, 0.45

Lease = Callable[[Leases], AbstractContextManager[float]]


def stream(name: str = STREAM, table: str = TABLE) -> Lease:
    return lambda leases: leases.stream(table, name)


def whole(table: str = TABLE) -> Lease:
    return lambda leases: leases.table(table)


@pytest.fixture
def second(store: LocalObjectStore) -> Leases:
    return Leases(store, "run two", lasts_s=LONG_S, patience_s=SOON_S)


def expiry_in(store: LocalObjectStore, key: str = STREAM_KEY) -> float:
    """Return the time at which the lease expires, in seconds since the epoch."""
    stored = store.get(key)
    assert stored is not None
    return time.time() - stored.age_s + LeaseClaim.from_bytes(stored.body).lasts_s


def test_a_free_lease_is_taken_at_once_and_released_also_when_the_work_fails(
    store: LocalObjectStore, first: Leases
) -> None:
    with first.stream(TABLE, STREAM) as waited:
        assert (waited.seconds < LONG_S, waited.holders) == (True, "")
        assert store.keys("") == [STREAM_KEY]
        assert claim_in(store).holder == "run one"
        assert 0 < expiry_in(store) - time.time() <= LONG_S
    assert store.keys("") == []
    with pytest.raises(FileNotFoundError), first.table(TABLE):
        Path("/no such file").read_text()
    assert store.keys("") == []


@pytest.mark.parametrize("held", [stream(), whole()], ids=["stream", "table"])
@pytest.mark.parametrize("wanted", [stream(), whole()], ids=["by stream", "by table"])
def test_batches_of_one_stream_and_maintenance_of_its_table_exclude_each_other(
    store: LocalObjectStore, first: Leases, second: Leases, held: Lease, wanted: Lease
) -> None:
    with held(first):
        before = store.keys("")
        with pytest.raises(LeaseLostError), wanted(second):
            pytest.fail("both held it")
        assert store.keys("") == before, "who waited in vain left something behind"
    with wanted(second):
        assert claim_in(store, store.keys("")[0]).holder == "run two"


def test_independent_streams_and_tables_run_at_the_same_time(
    store: LocalObjectStore, first: Leases, second: Leases
) -> None:
    for held, wanted in (
        (stream("a"), stream("b")),
        (whole(), whole("silver.planes")),
        (whole(), stream(table="silver.flights2")),
        (stream(), whole("silver.flights2")),
    ):
        with held(first), wanted(second):
            assert len(store.keys("")) == 2


def test_the_error_after_a_wait_names_the_lease_the_time_and_the_holders(
    store: LocalObjectStore, first: Leases, second: Leases
) -> None:
    third = Leases(store, "run three", patience_s=SOON_S)
    with first.stream(TABLE, "a"), second.stream(TABLE, "b"):
        with pytest.raises(LeaseLostError) as raised, third.stream(TABLE, "a"):
            pytest.fail("both held it")
        with pytest.raises(LeaseLostError, match="held by run one, run two"), third.table(TABLE):
            pytest.fail("streams were being written")
    assert str(raised.value).startswith(
        f"The lease {TABLE}.stream-a was not free within 0 s: held by run one\nLet that run end"
    )
    assert (raised.value.outcome, raised.value.exit_code) == (Outcome.CONFLICT, ExitCode.CONFLICT)


def test_a_heartbeat_renews_the_same_lease_also_after_a_full_disk(folder: Path) -> None:
    class FullAtFirst(LocalObjectStore):
        refusals = iter(range(2))

        def put_if_match(self, key: str, body: bytes, etag: str) -> str:
            for _ in self.refusals:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().put_if_match(key, body, etag)

    store = FullAtFirst(folder)
    with Leases(store, "run one", lasts_s=SHORT_S).stream(TABLE, STREAM):
        before = claim_in(store)
        wait_for(lambda: claim_in(store).beats > before.beats)
        after = claim_in(store)
        assert not list(store.refusals)
    assert (after.holder, after.nonce) == (before.holder, before.nonce)
    assert store.keys("") == []


def test_a_lease_is_released_even_if_the_answer_to_its_renewal_was_lost(folder: Path) -> None:
    class LosesAnswers(LocalObjectStore):
        renewed = threading.Event()

        def put_if_match(self, key: str, body: bytes, etag: str) -> str:
            assert super().put_if_match(key, body, etag)
            self.renewed.set()
            raise OSError(errno.ECONNRESET, "Connection reset by peer")

    store = LosesAnswers(folder)
    with Leases(store, "run one", lasts_s=SHORT_S).stream(TABLE, STREAM):
        assert store.renewed.wait(LONG_S)
    assert store.keys("") == []


def test_a_store_without_conditional_deletes_keeps_the_lease_of_the_next_holder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class DeletesAnything(LocalObjectStore):
        def delete_if_match(self, key: str, etag: str) -> bool:
            current = self.get(key)
            return current is not None and super().delete_if_match(key, current.etag)

    store, paused_s = DeletesAnything(folder), 0.0
    monkeypatch.setattr(leases, "steady_now_s", lambda: time.monotonic() + paused_s)
    with Leases(store, "run one", lasts_s=LONG_S).stream(TABLE, STREAM):
        paused_s = LONG_S
        stored = store.get(STREAM_KEY)
        assert stored
        assert store.put_if_match(STREAM_KEY, LeaseClaim("run two", "its own", LONG_S).to_bytes(), stored.etag)
    assert claim_in(store).holder == "run two"


def test_a_killed_holder_blocks_its_stream_and_its_table_no_longer_than_its_lease_lasts(
    folder: Path, store: LocalObjectStore
) -> None:
    with lease_of_other_process(folder, lasts_s=SHORT_S) as process:
        process.kill()
        process.wait(timeout=30)
        expires_at = expiry_in(store)
        assert claim_in(store).holder == HOLDER
        with Leases(store, "maintenance", patience_s=LONG_S).table(TABLE):
            assert time.time() > expires_at, "the lease was taken before it had expired"
        with Leases(store, "the next", patience_s=LONG_S).stream(TABLE, STREAM):
            assert claim_in(store).holder == "the next"
    assert store.keys("") == []


def test_a_holder_that_wakes_up_continues_if_nobody_took_its_lease(folder: Path, store: LocalObjectStore) -> None:
    with lease_of_other_process(folder, lasts_s=SHORT_S) as process:
        before = claim_in(store)
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: time.time() > expiry_in(store))
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: expiry_in(store) > time.time())
        assert claim_in(store).nonce == before.nonce
        release(process)
    assert store.keys("") == []


def test_a_stream_and_its_table_are_never_held_at_the_same_time(folder: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    run_together(3, count_up, folder, counter, 6)
    assert counter.read_text() == "18"
    assert LocalObjectStore(folder).keys("") == []


@pytest.mark.parametrize("skew_s", [-3600.0, 3600.0], ids=lambda skew: f"{skew:+.0f} s")
def test_a_lease_lasts_as_long_as_it_should_with_any_clocks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, skew_s: float
) -> None:
    """A shared folder may stamp files by the clock of the machine that writes them."""

    class Stamped(LocalObjectStore):
        def put_if_absent(self, key: str, body: bytes) -> bool:
            return super().put_if_absent(key, body) and self._stamp(key)

        def put_if_match(self, key: str, body: bytes, etag: str) -> bool:
            return super().put_if_match(key, body, etag) and self._stamp(key)

        def _stamp(self, key: str) -> bool:
            os.utime(folder / key, (0, time.time() + skew_s))
            return True

    store = LocalObjectStore(folder)

    def beats() -> int:
        return LeaseClaim.from_bytes((folder / STREAM_KEY).read_bytes()).beats

    with monkeypatch.context() as patch, Leases(Stamped(folder), "skewed", lasts_s=ALIVE_S).stream(TABLE, STREAM):
        # The looker's clock goes on by as much as the holder takes for each of its heartbeats.
        patch.setattr(objects, "time", SimpleNamespace(monotonic=lambda: beats() * ALIVE_S / 3))
        while beats() * ALIVE_S / 3 < 2 * ALIVE_S:
            with (
                pytest.raises(LeaseLostError, match="held by skewed"),
                Leases(store, "other", patience_s=0).stream(TABLE, STREAM),
            ):
                pytest.fail("both held it")
            time.sleep(ALIVE_S / 10)

    Stamped(folder).put_if_absent(STREAM_KEY, LeaseClaim("dead", "nonce", lasts_s=SHORT_S).to_bytes())
    with Leases(LocalObjectStore(folder), "other", patience_s=LONG_S).stream(TABLE, STREAM) as waited:
        assert SHORT_S <= waited.seconds < LONG_S / 2
        assert waited.holders == "dead"


@pytest.mark.parametrize("body", [b"", b'{"holder": "run o', b"[]", b"\xff"], ids=repr)
def test_a_damaged_lease_expires_like_any_other(folder: Path, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    store, clock = LocalObjectStore(folder), SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(objects, "time", clock)
    folder.mkdir()
    note = f"{TABLE}.waiting-{0:020d}-0123-table"
    for key in (STREAM_KEY, f"{TABLE}.table", note):
        (folder / key).write_bytes(body)
    with (
        pytest.raises(LeaseLostError, match="the lease cannot be read"),
        Leases(store, "too soon", patience_s=0).stream(TABLE, STREAM),
    ):
        pytest.fail("nobody knows yet that its holder is dead")
    clock.monotonic = lambda: LASTS_S + 1
    with Leases(store, "the next", patience_s=LONG_S).table(TABLE):
        pass
    with Leases(store, "one more", patience_s=LONG_S).stream(TABLE, STREAM):
        assert claim_in(store).holder == "one more"
    assert note not in store.keys("")

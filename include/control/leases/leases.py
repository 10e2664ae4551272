"""Leases: the right to write for a short while.

A batch leases its stream; maintenance leases the whole table, which excludes its streams. A lease saves work that would
be lost in a race. Correctness never hangs on it: a lost lease can do no harm (ADR 0002). Who waits leaves a note: they
get the lease in the order in which they came, and maintenance that takes long can let batches go first (ADR 0022).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast
from uuid import uuid4

from tenacity import RetryCallState, RetryError, Retrying, retry_if_result, stop_after_delay

from include.contracts.job.contention import LeaseWait
from include.control.leases.claim import LASTS_S, LeaseClaim, is_expired
from include.control.leases.queue import STREAM, WHOLE_TABLE, LeaseQueue
from include.control.storage.looks import look_again
from include.control.storage.objects import ObjectStore
from include.control.storage.steady_clock import steady_now_s
from include.errors import LeaseLostError, MillraceError

SOONEST_LOOK_S, SLOWEST_LOOK_S, LOOKS_A_WAIT = 0.02, 1.0, 200
"""How soon who waits looks again; a pause is a part of the wait before it. A look is a few requests to a bucket."""

log = logging.getLogger(__name__)


class Leases:
    """Leases of one lakehouse.

    Args:
        store: where the lease objects live.
        holder: who asks, shown to those who wait.
        lasts_s: a lease that is not renewed for so long is free.
        patience_s: how long to wait for a lease before giving up.
        one_writer: whether a batch excludes every other writer of its table, not only those of its stream.
    """

    def __init__(
        self,
        store: ObjectStore,
        holder: str,
        lasts_s: float = LASTS_S,
        patience_s: float = 600.0,
        *,
        one_writer: bool = False,
    ) -> None:
        self._store = store
        self._holder = holder
        self._lasts_s = lasts_s
        self._patience_s = patience_s
        self._one_writer = one_writer

    @contextmanager
    def stream(self, table: str, stream: str) -> Iterator[LeaseWait]:
        """Hold the lease of one stream; yields how long it was waited for, and for whom.

        Raises:
            LeaseLostError: it could not be had in time; the message names the holder.
        """
        name = f"{STREAM}{stream}"
        with self._held(table, WHOLE_TABLE if self._one_writer else name, asks_for=name) as waited:
            yield waited

    @contextmanager
    def table(self, table: str) -> Iterator[LeaseWait]:
        """Hold the lease of a whole table, once its streams are free; yields how long it was waited for, and for whom.

        Raises:
            LeaseLostError: it could not be had in time; the message names the holder.
        """
        with self._held(table, WHOLE_TABLE, asks_for=WHOLE_TABLE) as waited:
            yield waited

    def batches_waiting(self, table: str) -> str:
        """Who waits for a stream of the table, joined by commas; empty when nobody does."""
        return LeaseQueue(self._store, table).batches()

    @contextmanager
    def _held(self, table: str, wanted: str, asks_for: str) -> Iterator[LeaseWait]:
        """Hold the lease `wanted` of the table; while it is waited for, a note says what for."""
        started, queue = time.monotonic(), LeaseQueue(self._store, table)
        blocked_by = STREAM if wanted == WHOLE_TABLE else WHOLE_TABLE
        asked = _Asked(f"{table}.{wanted}", f"{table}.{blocked_by}", queue, queue.new_note(asks_for))
        got, holders = self._try(asked, self._claim_free), ""
        if not isinstance(got, _Claimed):
            holders = self._live_holders((asked.key, *self._store.keys(asked.blocked_by)))
            with self._noted(asked.note):
                got = self._wait_for(asked, holders)
        with self._renewed(got):
            look_again()  # others may have written while they held it
            yield LeaseWait(seconds=time.monotonic() - started, holders=holders)

    @contextmanager
    def _noted(self, note: str) -> Iterator[None]:
        # Its key is random, so that nobody else has put it.
        with self._renewed(cast(_Claimed, self._put(note))):
            yield

    @contextmanager
    def _renewed(self, claimed: _Claimed) -> Iterator[None]:
        """Keep the object of a claim alive by a heartbeat, then remove it."""
        stop = threading.Event()
        beat = threading.Thread(target=self._renew_until, args=(claimed, stop), daemon=True)
        beat.start()
        try:
            yield
        finally:
            stop.set()
            beat.join()
            self._leave(claimed)

    def _wait_for(self, asked: _Asked, holders: str) -> _Claimed:
        waiting = Retrying(
            retry=retry_if_result(lambda got: not isinstance(got, _Claimed)),
            stop=stop_after_delay(self._patience_s),
            wait=_until_next_look,
        )
        try:
            claimed = waiting(self._try, asked, self._claim)
        except RetryError:
            msg = (
                f"The lease {asked.key} was not free within {self._patience_s:.0f} s: {self._who(asked)}\n"
                "Let that run end, or stop it; its lease then expires by itself, and a retry goes on. A table that is "
                "often waited for so long wants a longer `conflicts: wait_for_lease` in its spec."
            )
            raise LeaseLostError(msg, LeaseWait(seconds=self._patience_s, holders=holders)) from None
        return cast(_Claimed, claimed)

    def _try(self, asked: _Asked, claim: Callable[[str], _Claimed | None]) -> _Claimed | int:
        """The lease, or how many come first.

        Claim first, look for the other kind second: of two that cross, at least one sees the other.
        """
        if ahead := asked.queue.ahead_of(asked.note):
            return ahead
        claimed = claim(asked.key)
        if claimed is None:
            return 0
        if any(self._is_live(other) for other in self._store.keys(asked.blocked_by)):
            self._release(claimed)
            return 0
        return claimed

    def _new_claim(self) -> LeaseClaim:
        return LeaseClaim(self._holder, uuid4().hex, self._lasts_s)

    def _claim_free(self, key: str) -> _Claimed | None:
        """Claim a lease that is probably free: by a single request if it is."""
        return self._put(key) or self._claim(key)

    def _claim(self, key: str) -> _Claimed | None:
        """Claim a lease that somebody else may hold."""
        current = self._store.get(key)
        if current is not None and not is_expired(current):
            return None
        return self._put(key, current.etag if current else "")

    def _put(self, key: str, replaced: str = "") -> _Claimed | None:
        """Put a new claim: in the place of the object with the etag `replaced`, or else where there is no object."""
        claim, put_at = self._new_claim(), steady_now_s()
        body = claim.to_bytes()
        etag = self._store.put_if_match(key, body, replaced) if replaced else self._store.put_if_absent(key, body)
        return _Claimed(key, claim.nonce, etag, put_at) if etag else None

    def _is_live(self, key: str) -> bool:
        current = self._store.get(key)
        return current is not None and not is_expired(current)

    def _renew_until(self, claimed: _Claimed, stop: threading.Event) -> None:
        is_held = True
        while is_held and not stop.wait(self._lasts_s / 3):
            try:
                is_held = self._renew(claimed)
            except (OSError, MillraceError) as error:  # full or away for a while; that must not end the heartbeat
                log.warning("the lease %s could not be renewed: %s", claimed.key, error)

    def _renew(self, claimed: _Claimed) -> bool:
        """Renew the lease; false where it was taken over after a pause: then the log fences this holder."""
        put_at, current = steady_now_s(), self._store.get(claimed.key)
        if current is None or (claim := LeaseClaim.from_bytes(current.body)).nonce != claimed.nonce:
            return False
        if etag := self._store.put_if_match(
            claimed.key, replace(claim, beats=claim.beats + 1).to_bytes(), current.etag
        ):
            claimed.etag, claimed.put_at = etag, put_at
        return True

    def _leave(self, claimed: _Claimed) -> None:
        """Give the lease back after the work, whose own end must not be hidden by a store that is away now."""
        try:
            self._release(claimed)
        except (OSError, MillraceError) as error:
            log.warning("the lease %s could not be given back, and expires by itself: %s", claimed.key, error)

    def _release(self, claimed: _Claimed) -> None:
        """Remove the lease unless another writer has it by now.

        Not every store knows conditional deletes. So the object is looked at first where it may have expired.
        """
        is_fresh = steady_now_s() - claimed.put_at < self._lasts_s / 2
        if is_fresh and self._store.delete_if_match(claimed.key, claimed.etag):
            return
        current = self._store.get(claimed.key)
        if current is not None and LeaseClaim.from_bytes(current.body).nonce == claimed.nonce:
            self._store.delete_if_match(claimed.key, current.etag)

    def _who(self, asked: _Asked) -> str:
        holders = self._live_holders((asked.key, *self._store.keys(asked.blocked_by)))
        return f"held by {holders}" if holders else "its holder has just gone"

    def _live_holders(self, keys: Iterable[str]) -> str:
        held = [found for key in keys if (found := self._store.get(key)) and not is_expired(found)]
        return ", ".join(sorted({LeaseClaim.from_bytes(found.body).holder for found in held}))


@dataclass
class _Claimed:
    """A lease that this process holds.

    Attributes:
        key: the key of its object.
        nonce: the nonce of the claim in it.
        etag: the etag of the object after its last known put.
        put_at: when that put began, by the steady clock.
    """

    key: str
    nonce: str
    etag: str
    put_at: float


@dataclass(frozen=True)
class _Asked:
    """A lease that is asked for: its key, the beginning of the keys that exclude it, and one's place in the queue."""

    key: str
    blocked_by: str
    queue: LeaseQueue
    note: str


def _until_next_look(state: RetryCallState) -> float:
    return _pause_s(cast(int, state.outcome.result()) if state.outcome else 0, state.seconds_since_start or 0.0)


def _pause_s(ahead: int, waited_s: float) -> float:
    """Seconds until somebody who waits looks again: the next one soon, all others more slowly.

    >>> _pause_s(0, 1.0), _pause_s(2, 1.0), _pause_s(0, 20.0), _pause_s(7, 600.0)
    (0.02, 0.14, 0.1, 1.0)
    """
    return min(max(SOONEST_LOOK_S, waited_s / LOOKS_A_WAIT) * (1 + 3 * ahead), SLOWEST_LOOK_S)

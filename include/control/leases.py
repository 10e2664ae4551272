"""Leases: the right to write for a short while.

A batch leases its stream; maintenance leases the whole table, which excludes its streams. A lease saves work that would
be lost in a race. Correctness never hangs on it: a lost lease can do no harm (ADR 0002). A batch that waits leaves a
note beside, so that maintenance which takes long can let it go first (ADR 0022).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import cast
from uuid import uuid4

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed, wait_random_exponential

from include.contracts.contention import Waited
from include.control.objects import ObjectStore, StoredObject
from include.errors import LeaseLostError, MillraceError

log = logging.getLogger(__name__)

WHOLE_TABLE = "table"
WAITING = "waiting"


@dataclass(frozen=True)
class LeaseClaim:
    """What a lease object says.

    Attributes:
        holder: who holds it, for people: the run id and the process.
        nonce: makes each claim another object, so that two claims never have one etag.
        lasts_s: it expires so long after it was put, by the clock of where it is stored: holders' clocks may differ.
        beats: how often the heartbeat has renewed it; makes each renewal another object.
    """

    holder: str
    nonce: str
    lasts_s: float
    beats: int = 0

    def to_bytes(self) -> bytes:
        """The claim as it is stored."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> LeaseClaim:
        """The claim that was stored."""
        return cls(**json.loads(body))


class Leases:
    """Leases of one lakehouse.

    Args:
        store: where the lease objects live.
        holder: who asks, shown to those who wait.
        lasts_s: a lease that is not renewed for so long is free.
        patience_s: how long to wait for a lease before giving up.
    """

    def __init__(self, store: ObjectStore, holder: str, lasts_s: float = 30.0, patience_s: float = 600.0) -> None:
        self._store = store
        self._holder = holder
        self._lasts_s = lasts_s
        self._patience_s = patience_s

    @contextmanager
    def stream(self, table: str, stream: str) -> Iterator[Waited]:
        """Hold the lease of one stream; yields how long it was waited for, and for whom.

        Raises:
            LeaseLostError: it could not be had in time; the message names the holder.
        """
        blocked_by, note = f"{table}.{WHOLE_TABLE}", f"{table}.{WAITING}-{uuid4().hex}"
        with self._held(f"{table}.stream-{stream}", blocked_by, note) as waited:
            yield waited

    @contextmanager
    def table(self, table: str) -> Iterator[Waited]:
        """Hold the lease of a whole table, once its streams are free; yields how long it was waited for, and for whom.

        Raises:
            LeaseLostError: it could not be had in time; the message names the holder.
        """
        with self._held(f"{table}.{WHOLE_TABLE}", blocked_by=f"{table}.stream-") as waited:
            yield waited

    def batches_waiting(self, table: str) -> str:
        """Who waits for a stream of the table, joined by commas; empty when nobody does.

        The notes of those who were killed while they waited are removed.
        """
        notes = self._store.keys(f"{table}.{WAITING}-")
        for note in notes:
            if (found := self._store.get(note)) and _is_expired(found):
                self._store.delete_if_match(note, found.etag)
        return self._live_holders(notes)

    def let_batches_in(self, table: str) -> None:
        """Wait until none waits for a stream of the table any more: each has its lease, or has given up."""
        Retrying(
            retry=retry_if_result(bool),
            stop=stop_after_delay(self._patience_s),
            wait=wait_fixed(0.2),
            retry_error_callback=lambda _state: "",
        )(self.batches_waiting, table)

    @contextmanager
    def _held(self, key: str, blocked_by: str, note: str = "") -> Iterator[Waited]:
        """Hold the lease `key`; while it is waited for, the object `note` tells the holder so."""
        started = time.monotonic()
        claim, holders = self._try(key, blocked_by), ""
        if claim is None:
            holders = self._live_holders((key, *self._store.keys(blocked_by)))
            with self._noted(note) if note else nullcontext():
                claim = self._wait_for(key, blocked_by, holders)
        with self._renewed(key, claim):
            yield Waited(seconds=time.monotonic() - started, for_whom=holders)

    @contextmanager
    def _noted(self, note: str) -> Iterator[None]:
        claim = self._new_claim()
        self._store.put_if_absent(note, claim.to_bytes())
        with self._renewed(note, claim):
            yield

    @contextmanager
    def _renewed(self, key: str, claim: LeaseClaim) -> Iterator[None]:
        """Keep the object of a claim alive by a heartbeat, then remove it."""
        stop = threading.Event()
        beat = threading.Thread(target=self._renew_until, args=(key, claim, stop), daemon=True)
        beat.start()
        try:
            yield
        finally:
            stop.set()
            beat.join()
            self._leave(key, claim.nonce)

    def _wait_for(self, key: str, blocked_by: str, holders: str) -> LeaseClaim:
        waiting = Retrying(
            retry=retry_if_result(lambda claim: claim is None),
            stop=stop_after_delay(self._patience_s),
            wait=wait_random_exponential(multiplier=0.05, max=1.0),
        )
        try:
            claim = waiting(self._try, key, blocked_by)
        except RetryError:
            msg = (
                f"The lease {key} was not free within {self._patience_s:.0f} s: {self._who(key, blocked_by)}. "
                "Let that run end, or stop it; its lease then expires by itself, and a retry goes on. A table that is "
                "often waited for so long wants a longer `conflicts: wait_for_lease` in its spec."
            )
            raise LeaseLostError(msg, Waited(seconds=self._patience_s, for_whom=holders)) from None
        return cast(LeaseClaim, claim)

    def _try(self, key: str, blocked_by: str) -> LeaseClaim | None:
        """Claim first, look for the other kind second: of two that cross, at least one sees the other."""
        claim = self._new_claim()
        if not self._claim(key, claim):
            return None
        if any(self._is_live(other) for other in self._store.keys(blocked_by)):
            self._release(key, claim.nonce)
            return None
        return claim

    def _new_claim(self) -> LeaseClaim:
        return LeaseClaim(self._holder, uuid4().hex, self._lasts_s)

    def _claim(self, key: str, claim: LeaseClaim) -> bool:
        current = self._store.get(key)
        if current is None:
            return self._store.put_if_absent(key, claim.to_bytes())
        return _is_expired(current) and self._store.put_if_match(key, claim.to_bytes(), current.etag)

    def _is_live(self, key: str) -> bool:
        current = self._store.get(key)
        return current is not None and not _is_expired(current)

    def _renew_until(self, key: str, claim: LeaseClaim, stop: threading.Event) -> None:
        is_held = True
        while is_held and not stop.wait(self._lasts_s / 3):
            try:
                is_held = self._renew(key, claim.nonce)
            except (OSError, MillraceError) as error:  # full or away for a while; that must not end the heartbeat
                log.warning("the lease %s could not be renewed: %s", key, error)

    def _renew(self, key: str, nonce: str) -> bool:
        """Renew the lease; false where it was taken over after a pause: then the log fences this holder."""
        current = self._store.get(key)
        if current is None or (claim := LeaseClaim.from_bytes(current.body)).nonce != nonce:
            return False
        self._store.put_if_match(key, replace(claim, beats=claim.beats + 1).to_bytes(), current.etag)
        return True

    def _leave(self, key: str, nonce: str) -> None:
        """Give the lease back after the work, whose own end must not be hidden by a store that is away now."""
        try:
            self._release(key, nonce)
        except (OSError, MillraceError) as error:
            log.warning("the lease %s could not be given back, and expires by itself: %s", key, error)

    def _release(self, key: str, nonce: str) -> None:
        current = self._store.get(key)
        if current is not None and LeaseClaim.from_bytes(current.body).nonce == nonce:
            self._store.delete_if_match(key, current.etag)

    def _who(self, key: str, blocked_by: str) -> str:
        holders = self._live_holders((key, *self._store.keys(blocked_by)))
        return f"held by {holders}" if holders else "its holder has just gone"

    def _live_holders(self, keys: Iterable[str]) -> str:
        held = [found for key in keys if (found := self._store.get(key)) and not _is_expired(found)]
        return ", ".join(sorted({LeaseClaim.from_bytes(found.body).holder for found in held}))


def _is_expired(stored: StoredObject) -> bool:
    return stored.age_s > LeaseClaim.from_bytes(stored.body).lasts_s

"""Leases: the right to write for a short time.

A batch leases its stream; maintenance leases the whole table, which excludes its streams. A lease saves work that would
be lost in a race. Correctness never depends on it: a lost lease does no harm (ADR 0002). A run that waits leaves a
note. So runs get the lease in the order of their arrival, and long maintenance can yield to batches (ADR 0022).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import cast
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError
from tenacity import RetryCallState, RetryError, Retrying, retry_if_result, stop_after_delay

from millrace.clock import steady_now_s
from millrace.contracts.job.contention import LeaseWait
from millrace.control.storage.objects import StoredObject
from millrace.control.storage.objects_on_s3 import ObjectStore
from millrace.control.storage.read_cache import clear_read_cache
from millrace.errors import LeaseLostError, MillraceError

LASTS_S = 30.0
"""The seconds after which a lease is free if nobody renews it."""

MIN_PAUSE_S, MAX_PAUSE_S, PAUSES_PER_WAIT = 0.02, 1.0, 200
"""The limits of the pause between two attempts to get a lease, and the share of the past wait that a pause takes.

An attempt is a few requests to a bucket.
"""

_WHOLE_TABLE, _STREAM, _WAITING = "table", "stream-", "waiting-"

SUSPECTS = "suspects"
"""The name in place of a table's in the lease of suspects."""

log = logging.getLogger(__name__)


class Leases:
    """The leases of a lakehouse.

    Args:
        store: the store of the lease objects.
        holder: the holder, shown to runs that wait.
        lasts_s: the seconds after which a lease is free if it is not renewed.
        patience_s: the most seconds to wait for a lease.
    """

    def __init__(
        self,
        store: ObjectStore,
        holder: str,
        lasts_s: float = LASTS_S,
        patience_s: float = 600.0,
    ) -> None:
        self._store = store
        self._holder = holder
        self._lasts_s = lasts_s
        self._patience_s = patience_s

    def stream(self, table: str, stream: str) -> AbstractContextManager[LeaseWait]:
        """Hold the lease of a stream, and yield the wait for it.

        Raises:
            LeaseLostError: the lease was not free in time; the message names the holder.
        """
        return self._hold(table, f"{_STREAM}{stream}")

    def table(self, table: str) -> AbstractContextManager[LeaseWait]:
        """Hold the lease of a whole table, which needs all its streams to be free, and yield the wait for it.

        Raises:
            LeaseLostError: the lease was not free in time; the message names the holder.
        """
        return self._hold(table, _WHOLE_TABLE)

    def suspects(self) -> AbstractContextManager[LeaseWait]:
        """Hold the lease of files that may have killed a driver, of all tables: none takes others with it.

        Raises:
            LeaseLostError: the lease was not free in time; the message names the holder.
        """
        return self._hold(SUSPECTS, _WHOLE_TABLE)

    def waiting_batches(self, table: str) -> str:
        """Return the runs that wait for a stream of the table, joined by commas; empty if there are none."""
        return _Queue(self._store, table).waiting_batches()

    @contextmanager
    def _hold(self, table: str, name: str) -> Iterator[LeaseWait]:
        """Hold the lease `name` of the table; during the wait, a note in the queue names it."""
        started, queue = time.monotonic(), _Queue(self._store, table)
        blocked_by = _STREAM if name == _WHOLE_TABLE else _WHOLE_TABLE
        request = _Request(table, f"{table}.{name}", f"{table}.{blocked_by}", queue, queue.new_note(name))
        result, holders = self._try_free(request), ""
        if not isinstance(result, _Lease):
            holders = self._holders(request)
            # The key of the note is random, so that no other process has put it.
            with self._keep_alive(cast(_Lease, self._put(request.note))):
                result = self._wait(request, holders)
        with self._keep_alive(result):
            clear_read_cache()  # the earlier holder may have written
            yield LeaseWait(seconds=time.monotonic() - started, holders=holders)

    @contextmanager
    def _keep_alive(self, lease: _Lease) -> Iterator[None]:
        """Renew a lease or a note by a heartbeat, then release it."""
        stop = threading.Event()
        beat = threading.Thread(target=self._renew_until, args=(lease, stop), daemon=True)
        beat.start()
        try:
            yield
        finally:
            stop.set()
            beat.join()
            try:
                self._release(lease)
            except (OSError, MillraceError) as error:  # must not hide an error of the work
                log.warning("the lease %s could not be released, and expires by itself: %s", lease.key, error)

    def _wait(self, request: _Request, holders: str) -> _Lease:
        retrying = Retrying(
            retry=retry_if_result(lambda result: not isinstance(result, _Lease)),
            stop=stop_after_delay(self._patience_s),
            wait=_next_pause,
        )
        try:
            return cast(_Lease, retrying(self._try, request))
        except RetryError:
            now = self._holders(request)
            msg = (
                f"The lease {request.key} was not free within {self._patience_s:.0f} s: "
                f"{f'held by {now}' if now else 'its holder has just released it'}\n"
                "Let that run end, or stop it; then its lease expires by itself, and a retry continues. If runs often "
                "wait that long for the table, set a longer `conflicts: wait_for_lease` in its spec."
            )
            raise LeaseLostError(msg, LeaseWait(seconds=self._patience_s, holders=holders)) from None

    def _try_free(self, request: _Request) -> _Lease | int:
        """Return the lease, which is probably free, or the number of runs that come first in the queue.

        A free lease takes one put and one listing.
        """
        lease = self._put(request.key) or self._claim(request.key)
        return 0 if lease is None else self._keep_if_first(request, lease)

    def _try(self, request: _Request) -> _Lease | int:
        """Return the lease that other runs wait for, or the number of runs that come first in the queue.

        A run claims the lease only at its turn, so that it does not delay the first run in the queue.
        """
        if ahead := request.queue.count_ahead(request.note, self._store.keys(f"{request.table}.")):
            return ahead
        lease = self._claim(request.key)
        return 0 if lease is None else self._keep_if_first(request, lease)

    def _keep_if_first(self, request: _Request, lease: _Lease) -> _Lease | int:
        """Return a lease that was just claimed; release it if another run excludes this one or comes first.

        The claim comes before the check of the excluding leases. So of two runs at the same time, at least one sees the
        other.
        """
        keys = self._store.keys(f"{request.table}.")
        ahead = request.queue.count_ahead(request.note, keys)
        if ahead or any(self._live(key) for key in keys if key.startswith(request.blocked_by)):
            self._release(lease)
            return ahead
        return lease

    def _claim(self, key: str) -> _Lease | None:
        """Claim a lease that another run may hold."""
        current = self._store.get(key)
        if current is not None and not is_expired(current):
            return None
        return self._put(key, current.etag if current else "")

    def _put(self, key: str, replaced: str = "") -> _Lease | None:
        """Put a new claim if the object has the etag `replaced`, or without an etag if there is no object."""
        claim, put_at = LeaseClaim(self._holder, uuid4().hex, self._lasts_s), steady_now_s()
        body = claim.to_bytes()
        etag = self._store.put_if_match(key, body, replaced) if replaced else self._store.put_if_absent(key, body)
        return _Lease(key, claim.nonce, etag, put_at) if etag else None

    def _live(self, key: str) -> LeaseClaim | None:
        """Return the claim of a lease that has not expired; None if there is none."""
        current = self._store.get(key)
        return LeaseClaim.from_bytes(current.body) if current is not None and not is_expired(current) else None

    def _renew_until(self, lease: _Lease, stop: threading.Event) -> None:
        """Renew the lease, unless another run took it over after a pause: then the log rejects this holder."""
        while not stop.wait(self._lasts_s / 3):
            try:
                put_at, current = steady_now_s(), self._store.get(lease.key)
                if current is None or (claim := LeaseClaim.from_bytes(current.body)).nonce != lease.nonce:
                    return
                body = replace(claim, beats=claim.beats + 1).to_bytes()
                if etag := self._store.put_if_match(lease.key, body, current.etag):
                    lease.etag, lease.put_at = etag, put_at
            except (OSError, MillraceError) as error:  # a full disk or an unreachable store may recover
                log.warning("the lease %s could not be renewed: %s", lease.key, error)

    def _release(self, lease: _Lease) -> None:
        """Remove the lease, unless another run holds it now.

        Not every store has conditional deletes. So a lease that may have expired is read first.
        """
        is_fresh = steady_now_s() - lease.put_at < self._lasts_s / 2
        if is_fresh and self._store.delete_if_match(lease.key, lease.etag):
            return
        current = self._store.get(lease.key)
        if current is not None and LeaseClaim.from_bytes(current.body).nonce == lease.nonce:
            self._store.delete_if_match(lease.key, current.etag)

    def _holders(self, request: _Request) -> str:
        claims = map(self._live, (request.key, *self._store.keys(request.blocked_by)))
        return ", ".join(sorted({claim.holder for claim in claims if claim}))


@dataclass
class _Lease:
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
class _Request:
    """A request for a lease.

    Attributes:
        table: the table.
        key: the key of the lease.
        blocked_by: the prefix of the keys of leases that exclude it.
        queue: the queue of the table.
        note: the key of the request's note in the queue.
    """

    table: str
    key: str
    blocked_by: str
    queue: _Queue
    note: str


def _next_pause(state: RetryCallState) -> float:
    return _pause_s(cast(int, state.outcome.result()) if state.outcome else 0, state.seconds_since_start or 0.0)


def _pause_s(ahead: int, waited_s: float) -> float:
    """Return the seconds until the next attempt: few for the first run in the queue, more for the others.

    >>> _pause_s(0, 1.0), _pause_s(2, 1.0), _pause_s(0, 20.0), _pause_s(7, 600.0)
    (0.02, 0.14, 0.1, 1.0)
    """
    return min(max(MIN_PAUSE_S, waited_s / PAUSES_PER_WAIT) * (1 + 3 * ahead), MAX_PAUSE_S)


class _Queue:
    """The queue of the runs that wait for the leases of a table, first come, first served; `store` holds the notes.

    Each run leaves a note: an object with a heartbeat. The name of the note starts with the time at which the wait
    began, so that the sorted names are the queue. The queue is no lock: different clocks change its order, and nothing
    else.
    """

    def __init__(self, store: ObjectStore, table: str) -> None:
        self._store = store
        self._prefix = f"{table}.{_WAITING}"

    def new_note(self, lease: str) -> str:
        """Return the key for the note of a run that starts to wait for the lease `table` or `stream-<name>`."""
        return f"{self._prefix}{time.time_ns():020d}-{uuid4().hex}-{lease}"

    def count_ahead(self, note: str, keys: Collection[str]) -> int:
        """Return the number of older notes for leases that exclude the lease of this note.

        `keys` are the keys of the table's leases and notes.
        """
        lease = self._lease(note)
        older = (key for key in keys if key.startswith(self._prefix) and key < note)
        excluding = (key for key in older if _WHOLE_TABLE in (lease, self._lease(key)) or self._lease(key) == lease)
        return sum(self._claim(key) is not None for key in excluding)

    def waiting_batches(self) -> str:
        """Return the runs that wait for a stream of the table, joined by commas; empty if there are none."""
        notes = [key for key in self._store.keys(self._prefix) if self._lease(key).startswith(_STREAM)]
        return ", ".join(sorted({claim.holder for key in notes if (claim := self._claim(key))}))

    def _lease(self, note: str) -> str:
        return note.removeprefix(self._prefix).split("-", 2)[2]

    def _claim(self, note: str) -> LeaseClaim | None:
        """Return the claim in a note; remove an expired note, whose run was killed."""
        stored = self._store.get(note)
        if stored is None:
            return None
        if is_expired(stored):
            self._store.delete_if_match(note, stored.etag)
            return None
        return LeaseClaim.from_bytes(stored.body)


@dataclass(frozen=True)
class LeaseClaim:
    """The content of an object that is a lease, or a note of a run that waits for a lease.

    Attributes:
        holder: the run id and the process of the holder, for people.
        nonce: a random text, so that two claims never have the same etag.
        lasts_s: the seconds after which it expires if it is not renewed.
        beats: the number of renewals, so that each renewal has another etag.
    """

    holder: str
    nonce: str
    lasts_s: float
    beats: int = 0

    def to_bytes(self) -> bytes:
        """Return the claim as the body of an object."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> LeaseClaim:
        """Return the claim in the body of an object; a body that is damaged gives a claim of nobody, which expires."""
        try:
            return _ADAPTER.validate_json(body)
        except ValidationError:
            return cls(holder="an unknown run: the lease cannot be read", nonce="", lasts_s=LASTS_S)


_ADAPTER = TypeAdapter(LeaseClaim)


def is_expired(stored: StoredObject) -> bool:
    """Whether a claim has expired, because it was not renewed in time."""
    return stored.age_s > LeaseClaim.from_bytes(stored.body).lasts_s

"""The queue of the runs that wait for the leases of a table, first come, first served.

Each run leaves a note: an object with a heartbeat. The name of the note starts with the time at which the wait began,
so that the sorted names are the queue. The queue is no lock: different clocks change its order, and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from uuid import uuid4

from millrace.control.leases.claim import LeaseClaim, is_expired
from millrace.control.storage.objects_on_s3 import ObjectStore

WHOLE_TABLE = "table"
STREAM = "stream-"
WAITING = "waiting-"


class LeaseQueue:
    """The queue of one table; `store` holds the notes."""

    def __init__(self, store: ObjectStore, table: str) -> None:
        self._store = store
        self._prefix = f"{table}.{WAITING}"

    def new_note(self, lease: str) -> str:
        """Return the key for the note of a run that starts to wait for the lease `table` or `stream-<name>`."""
        return f"{self._prefix}{time.time_ns():020d}-{uuid4().hex}-{lease}"

    def count_ahead(self, note: str, keys: Collection[str]) -> int:
        """Return the number of older notes for leases that exclude the lease of this note.

        `keys` are the keys of the table's leases and notes.
        """
        lease = self._lease(note)
        older = (key for key in keys if key.startswith(self._prefix) and key < note)
        excluding = (key for key in older if WHOLE_TABLE in (lease, self._lease(key)) or self._lease(key) == lease)
        return sum(self._claim(key) is not None for key in excluding)

    def waiting_batches(self) -> str:
        """Return the runs that wait for a stream of the table, joined by commas; empty if there are none."""
        notes = [key for key in self._store.keys(self._prefix) if self._lease(key).startswith(STREAM)]
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

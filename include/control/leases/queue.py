"""Who waits for the leases of a table, first come, first served.

Each has left a note: an object with a heartbeat, whose name begins with the time at which its wait began, so that the
names in their order are the queue. It is manners, not a lock: clocks that differ change the order, and nothing else.
"""

from __future__ import annotations

import time
from uuid import uuid4

from include.control.leases.claim import LeaseClaim, is_expired
from include.control.storage.objects import ObjectStore

WHOLE_TABLE = "table"
STREAM = "stream-"
WAITING = "waiting-"


class LeaseQueue:
    """The queue of one table.

    Args:
        store: where the notes live.
        table: the table.
    """

    def __init__(self, store: ObjectStore, table: str) -> None:
        self._store = store
        self._prefix = f"{table}.{WAITING}"

    def new_note(self, wanted: str) -> str:
        """The key for the note of somebody who comes now and wants the lease `table`, or `stream-<name>`."""
        return f"{self._prefix}{time.time_ns():020d}-{uuid4().hex}-{wanted}"

    def ahead_of(self, note: str) -> int:
        """How many wait since before that note for a lease that excludes what it wants."""
        wanted = self._wanted(note)
        older = (key for key in self._store.keys(self._prefix) if key < note)
        rivals = (key for key in older if WHOLE_TABLE in (wanted, self._wanted(key)) or self._wanted(key) == wanted)
        return sum(self._claim(key) is not None for key in rivals)

    def batches(self) -> str:
        """Who waits for a stream of the table, joined by commas; empty when nobody does."""
        notes = [key for key in self._store.keys(self._prefix) if self._wanted(key).startswith(STREAM)]
        return ", ".join(sorted({claim.holder for key in notes if (claim := self._claim(key))}))

    def _wanted(self, note: str) -> str:
        return note.removeprefix(self._prefix).split("-", 2)[2]

    def _claim(self, note: str) -> LeaseClaim | None:
        """What the note says; that of somebody who was killed while they waited is removed."""
        found = self._store.get(note)
        if found is None:
            return None
        if is_expired(found):
            self._store.delete_if_match(note, found.etag)
            return None
        return LeaseClaim.from_bytes(found.body)

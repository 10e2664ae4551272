"""`ops.commits`: the waits and conflicts of batches, and the work of maintenance, append-only.

A batch that met no other writer has no event. The table is for people only: a run that dies before it appends its event
loses nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from millrace.contracts.job.contention import LeaseWait, LostRace
from millrace.control.events.conditions import Span
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.contention import Contention, add_contention
from millrace.control.ledger.states.table_state import TableStates, tolerate_state_errors
from millrace.paths import LakehousePaths

COMMITS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("operation", pa.string()),
        ("table", pa.string()),
        ("stream", pa.string()),
        ("batch_seq", pa.int64()),
        ("token", pa.string()),
        ("version", pa.int64()),
        ("run_id", pa.string()),
        ("attempts", pa.int32()),
        ("took_s", pa.float64()),
        ("waited_s", pa.float64()),
        ("waited_for", pa.string()),
        ("lost_to", pa.list_(pa.struct([("conflict", pa.string()), ("operation", pa.string()),
                                        ("run_id", pa.string()), ("version", pa.int64())]))),
    ]
)  # fmt: skip

COMMITTED, NOT_COMMITTED = "committed", "not_committed"

BATCH = "batch"
"""The operation of a batch; maintenance has the name that Delta gives it, such as `OPTIMIZE`."""


@dataclass(frozen=True)
class TableWrite:
    """A run's write to one table.

    Attributes:
        table: the table.
        run_id: the run.
        at: when the write was recorded.
        operation: `batch`, or Delta's name of the maintenance operation.
        stream: the stream of the batch; empty for maintenance, which works on the whole table.
        batch_seq: the number of the committed batch; None if the run committed no batch.
        token: the token of the committed batch; empty if there is none.
        version: the committed version; None if there is none.
        attempts: the number of attempts.
        took_s: seconds from the request for the lease to the end.
        waited: the wait for the lease.
        lost: the commits of other writers that came first.
    """

    table: str
    run_id: str
    at: datetime
    operation: str = BATCH
    stream: str = ""
    batch_seq: int | None = None
    token: str = ""
    version: int | None = None
    attempts: int = 0
    took_s: float = 0.0
    waited: LeaseWait = field(default_factory=LeaseWait)
    lost: tuple[LostRace, ...] = ()


class CommitHistory:
    """Reads and writes `ops.commits` of one lakehouse.

    Args:
        paths: the lakehouse.
        keep: how long a writer keeps the events; None keeps them for ever.
    """

    def __init__(self, paths: LakehousePaths, keep: timedelta | None = None) -> None:
        self._paths = paths
        self._states = TableStates(paths)
        self._events = OpsTable.of(paths, "commits", COMMITS, keep)

    def record(self, write: TableWrite) -> None:
        """Append a run's write."""
        event = {
            "recorded_at": write.at,
            "event": NOT_COMMITTED if write.version is None else COMMITTED,
            **{name: getattr(write, name) for name in _SAME},
            "waited_s": write.waited.seconds,
            "waited_for": write.waited.holders,
            "lost_to": [race.model_dump() for race in write.lost],
        }
        self._events.append([event])
        if not write.lost and not write.waited.seconds:
            return
        with tolerate_state_errors(write.table):
            identity = table_id(self._paths.table(write.table))
            self._states.change(write.table, (Contention, partial(_contention_after, write, identity)))

    def of(self, table: str) -> list[TableWrite]:
        """Return the writes to a table, oldest first."""
        return [_write(event) for event in self._events.events(table)]

    def between(self, table: str, least: int, greatest: int | None) -> list[TableWrite]:
        """Return the writes that committed versions from `least` to `greatest`, oldest first."""
        return [_write(event) for event in self._events.find(table, version=Span(least, greatest))]

    def of_run(self, table: str, run_id: str, recorded: Span) -> list[TableWrite]:
        """Return the writes of a run to a table, oldest first; `recorded` is when, so that little history is read."""
        return [_write(event) for event in self._events.find(table, run_id=[run_id], recorded_at=recorded)]


def _contention_after(write: TableWrite, identity: str, stored: Contention | None) -> Contention:
    """Return the sums after a write; they start at zero where the state lacks them.

    The events that are still kept are not added: scraped after a zero they would look like new waits.
    """
    sums = stored if stored and stored.table_id == identity else Contention(table_id=identity)
    return add_contention(sums, write.waited.seconds, write.attempts, write.lost)


def _write(event: Mapping[str, Any]) -> TableWrite:
    return TableWrite(
        **{name: event[name] for name in _SAME if event[name] is not None or name in _NULLABLE},
        waited=LeaseWait(seconds=event["waited_s"], holders=event["waited_for"]),
        lost=tuple(LostRace.model_validate(race) for race in event["lost_to"]),
        at=event["recorded_at"],
    )


def contended_writes(history: Sequence[TableWrite]) -> list[TableWrite]:
    """Return the writes that lost a race, or waited at least a second for a lease."""
    return [write for write in history if write.lost or write.waited.seconds >= 1]


_SAME = ("operation", "table", "stream", "run_id", "batch_seq", "token", "version", "attempts", "took_s")
"""The attributes that have the same name in the event."""

_NULLABLE = ("batch_seq", "version")
"""The attributes that may be None. A null in another column comes from an older event, and means the default."""

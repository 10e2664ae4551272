"""`ops.commits`: how the runs that wrote or maintained a table got on with others, append-only.

It explains, and decides nothing: a run that dies before its line is written has lost no more than that line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from include.contracts.job.contention import LeaseWait, LostRace
from include.control.ledger.ops_table import OpsTable
from include.paths import LakehousePaths

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
"""The operation of those that carry a number; maintenance is named as Delta names it, such as `OPTIMIZE`."""


@dataclass(frozen=True)
class TableWrite:
    """How one run's writing of one table went.

    Attributes:
        table: the table.
        run_id: the run.
        operation: `batch`, or what maintenance did, as Delta names it.
        stream: the stream of the batch; empty for maintenance, which works on the whole table.
        batch_seq: the number of the batch that it committed; None, like `token` and `version`, where it committed none.
        token: the token of that batch.
        version: the version that it made.
        attempts: how often it was begun.
        took_s: seconds from asking for the lease to the end.
        waited: what it waited for.
        lost: the races that it lost on the way.
        at: when it was recorded.
    """

    table: str
    run_id: str
    operation: str = BATCH
    stream: str = ""
    batch_seq: int | None = None
    token: str = ""
    version: int | None = None
    attempts: int = 0
    took_s: float = 0.0
    waited: LeaseWait = field(default_factory=LeaseWait)
    lost: tuple[LostRace, ...] = ()
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


class CommitHistory:
    """Reads and writes `ops.commits` of one lakehouse.

    Args:
        paths: where it lies.
        keep: how long a writer keeps its events; for ever where it is left out.
    """

    def __init__(self, paths: LakehousePaths, keep: timedelta | None = None) -> None:
        self._events = OpsTable(paths.ops("commits"), COMMITS, keep)

    def record(self, written: TableWrite) -> None:
        """Write down how a run has got on."""
        self._events.append([_event(written)])

    def of(self, table: str) -> list[TableWrite]:
        """The runs that wrote a table, oldest first."""
        return [_written(event) for event in self._events.events(table)]


def contended_writes(history: Sequence[TableWrite], seconds: float = 1.0) -> list[TableWrite]:
    """The runs that lost a race, or waited for a lease for so long."""
    return [one for one in history if one.lost or one.waited.seconds >= seconds]


def _event(written: TableWrite) -> dict[str, Any]:
    return {
        "recorded_at": written.at,
        "event": NOT_COMMITTED if written.version is None else COMMITTED,
        **{name: getattr(written, name) for name in _SAME},
        "waited_s": written.waited.seconds,
        "waited_for": written.waited.holders,
        "lost_to": [race.model_dump() for race in written.lost],
    }


def _written(event: dict[str, Any]) -> TableWrite:
    return TableWrite(
        **{name: event[name] for name in _SAME if event[name] is not None or name in _MAY_LACK},
        waited=LeaseWait(seconds=event["waited_s"], holders=event["waited_for"]),
        lost=tuple(LostRace.model_validate(race) for race in event["lost_to"]),
        at=event["recorded_at"],
    )


_SAME = ("operation", "table", "stream", "run_id", "batch_seq", "token", "version", "attempts", "took_s")
"""What is called the same in the event."""

_MAY_LACK = ("batch_seq", "version")
"""What an event may say nothing of; of the rest an older event may lack a column, which then has its default."""

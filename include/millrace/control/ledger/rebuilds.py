"""`ops.rebuilds`: the rebuilds of tables, who requested them, and how they ended; append-only.

Only the log of a table tells whether it was switched: the commit carries the id of the rebuild (ADR 26).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from millrace.contracts.job.requests import RebuildRequest
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.log.batch import new_token
from millrace.paths import LakehousePaths

REBUILDS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("table", pa.string()),
        ("table_id", pa.string()),
        ("rebuild", pa.string()),
        ("tables", pa.list_(pa.string())),
        ("specs", pa.list_(pa.string())),
        ("run_id", pa.string()),
        ("said_by", pa.string()),
        ("why", pa.string()),
    ]
)


class RebuildEvent(StrEnum):
    """An event of a rebuild, which is active from `started` to `done` or `cancelled`."""

    STARTED = "started"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Rebuild:
    """An active rebuild.

    Attributes:
        id: the id, which is also the name of its folder and part of its commits.
        table: the requested table.
        tables: the requested table and the downstream tables that are rebuilt with it, in build order.
        specs: the `spec_hash` of each of these tables at the start of the rebuild.
        run_id: the run that started it.
    """

    id: str
    table: str
    tables: tuple[str, ...]
    specs: tuple[str, ...]
    run_id: str

    def token(self, table: str) -> str:
        """Return the token of the batch that switches a table; it is the same for everybody who resumes the rebuild."""
        return hashlib.sha256(f"{self.id}/{table}".encode()).hexdigest()[:32]


class Rebuilds:
    """Reads and writes `ops.rebuilds` of one lakehouse; its events are stored under the requested table."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "rebuilds", REBUILDS)

    def active(self, tables: Iterable[str]) -> list[Rebuild]:
        """Return the active rebuilds that were requested for one of the tables."""
        rebuilds: list[Rebuild] = []
        for table in tables:
            events: dict[str, dict[str, Any]] = {}
            for row in self._events.events(table):
                if row["event"] == RebuildEvent.STARTED:
                    events[row["rebuild"]] = row
                else:
                    events.pop(row["rebuild"], None)
            rebuilds += [
                Rebuild(id_, table, tuple(row["tables"]), tuple(row["specs"]), row["run_id"])
                for id_, row in events.items()
            ]
        return rebuilds

    def ended_ids(self, table: str) -> list[str]:
        """Return the ids of the ended rebuilds of a table; after a crash the folder of a rebuild may still exist."""
        return [row["rebuild"] for row in self._events.events(table) if row["event"] != RebuildEvent.STARTED]

    def is_done_by(self, run_id: str, table: str) -> bool:
        """Whether a run has ended a rebuild of a table."""
        return bool(self._events.events(table, run_id=run_id, event=RebuildEvent.DONE))

    def start(
        self, table: str, tables: tuple[str, ...], specs: tuple[str, ...], request: RebuildRequest, run_id: str
    ) -> Rebuild:
        """Create a rebuild, and record its start."""
        rebuild = Rebuild(new_token()[:12], table, tables, specs, run_id)
        self.record(RebuildEvent.STARTED, rebuild, request, run_id)
        return rebuild

    def record(self, event: RebuildEvent, rebuild: Rebuild, request: RebuildRequest, run_id: str) -> None:
        """Record an event of a rebuild, and the person who requested it."""
        row = {
            "event": event.value,
            "table": rebuild.table,
            "rebuild": rebuild.id,
            "tables": list(rebuild.tables),
            "specs": list(rebuild.specs),
            "run_id": run_id,
            "said_by": request.said_by,
            "why": request.why,
        }
        self._events.append_once([row], f"{rebuild.id}/{event}")

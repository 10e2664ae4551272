"""`ops.rebuilds`: which tables are being built anew, by whom, and how far that came; append-only.

Whether a table was switched is said by its log alone: the commit carries the rebuild's id (ADR 26).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from include.contracts.job.rebuild_request import RebuildRequest
from include.control.ledger.ops_table import OpsTable
from include.control.log.batch import new_token
from include.paths import LakehousePaths

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
    """What happened to a rebuild. It is under way until it is done or cancelled."""

    STARTED = "started"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Rebuild:
    """A rebuild that is under way.

    Attributes:
        id: names its folder, and is in the commits that it makes.
        table: the table that somebody asked for.
        tables: it, and the tables below it that are built anew with it, in build order.
        specs: the hash of the spec of each of them, when it was started.
    """

    id: str
    table: str
    tables: tuple[str, ...]
    specs: tuple[str, ...]

    def token(self, table: str) -> str:
        """The token of the one batch by which a table is switched, the same whoever resumes the rebuild."""
        return hashlib.sha256(f"{self.id}/{table}".encode()).hexdigest()[:32]


class Rebuilds:
    """Reads and writes `ops.rebuilds` of one lakehouse; each event is about the table that somebody asked for."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable(paths.ops("rebuilds"), REBUILDS)

    def active(self, tables: Iterable[str]) -> list[Rebuild]:
        """The rebuilds under way that somebody asked for at one of the tables."""
        return [rebuild for table in tables for rebuild in self._open(table)]

    def ended_ids(self, table: str) -> list[str]:
        """The ids of the rebuilds of a table that are over; the folder of one whose driver died may still be there."""
        return [row["rebuild"] for row in self._events.events(table) if row["event"] != RebuildEvent.STARTED]

    def start(
        self, table: str, tables: tuple[str, ...], specs: tuple[str, ...], request: RebuildRequest, run_id: str
    ) -> Rebuild:
        """Write down that a rebuild begins."""
        rebuild = Rebuild(new_token()[:12], table, tables, specs)
        self.record(RebuildEvent.STARTED, rebuild, request, run_id)
        return rebuild

    def record(self, event: RebuildEvent, rebuild: Rebuild, request: RebuildRequest, run_id: str) -> None:
        """Write down what happened to a rebuild, and by whose word."""
        said = {"run_id": run_id, "said_by": request.said_by, "why": request.why}
        about = {"table": rebuild.table, "rebuild": rebuild.id, "tables": list(rebuild.tables)}
        event_ = {"recorded_at": datetime.now(UTC), "event": event.value, "specs": list(rebuild.specs)}
        self._events.append_once([{**event_, **about, **said}], f"{rebuild.id}/{event}")

    def _open(self, table: str) -> list[Rebuild]:
        started: dict[str, dict[str, Any]] = {}
        for row in self._events.events(table):
            if row["event"] == RebuildEvent.STARTED:
                started[row["rebuild"]] = row
            else:
                started.pop(row["rebuild"], None)
        return [Rebuild(id_, table, tuple(row["tables"]), tuple(row["specs"])) for id_, row in started.items()]

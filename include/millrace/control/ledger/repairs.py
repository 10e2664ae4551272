"""`ops.repairs`: the repairs of tables, who decided them and why, and how they ended; append-only.

Only the log of a table tells whether a repair was made: the commit carries its id (ADR 61).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from millrace.control.ledger.ops_table import OpsTable
from millrace.control.log.batch import Repair
from millrace.paths import LakehousePaths

REPAIRS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("table", pa.string()),
        ("table_id", pa.string()),
        ("repair", pa.string()),
        ("action", pa.string()),
        ("shown", pa.string()),
        ("version", pa.int64()),
        ("run_id", pa.string()),
        ("said_by", pa.string()),
        ("why", pa.string()),
    ]
)

RESTORE, DELETE, REPLACE = "restore", "delete", "replace"
"""The actions of a repair: put back the rows of an earlier version; delete the rows of a condition, or replace them."""

DROP, UNDROP = "drop", "undrop"
"""Take a table out of the way, and bring it back."""


class RepairEvent(StrEnum):
    """An event of a repair: somebody has decided it, or it is complete."""

    DECIDED = "decided"
    DONE = "done"


@dataclass(frozen=True)
class DecidedRepair:
    """A repair that was decided, and that nobody has completed.

    Attributes:
        table: the table.
        action: what it does.
        repair: its id, who decided it, and why.
        shown: what the person was shown, as JSON.
        version: the newest version then.
    """

    table: str
    action: str
    repair: Repair
    shown: str
    version: int

    @property
    def command(self) -> str:
        """The command that does exactly this, or goes on with it."""
        return f"{json.loads(self.shown)['command']} --why ..."

    @property
    def interruption(self) -> str:
        """That it was interrupted, in words."""
        article = "an" if self.action == UNDROP else "a"
        return f"{article} {self.action} that {self.repair.said_by} decided was interrupted"


class Repairs:
    """Reads and writes `ops.repairs` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "repairs", REPAIRS)

    def record(
        self, event: RepairEvent, decided: DecidedRepair, table_id: str, run_id: str, version: int | None = None
    ) -> None:
        """Record an event of a repair, once; `version` is the version that the repair made."""
        repair = decided.repair
        row = {
            "event": event.value,
            "table": decided.table,
            "table_id": table_id,
            "repair": repair.id,
            "action": decided.action,
            "shown": decided.shown,
            "version": decided.version if version is None else version,
            "run_id": run_id,
            "said_by": repair.said_by,
            "why": repair.why,
        }
        self._events.append_once([row], f"{decided.table}/{repair.id}/{event}")

    def decided(self, table: str, repair_id: str) -> DecidedRepair | None:
        """Return a decided repair of a table by its id; None if nobody has decided it."""
        return next((each for each in self._with(table, RepairEvent.DECIDED) if each.repair.id == repair_id), None)

    def of_run(self, table: str, run_id: str) -> Repair | None:
        """Return the repair of a table that a run has begun; None if it has begun none."""
        rows = self._events.events(table, ("repair",), event=RepairEvent.DECIDED.value, run_id=run_id)
        known = self.decided(table, rows[-1]["repair"]) if rows else None
        return known.repair if known else None

    def tables(self) -> set[str]:
        """Return the tables of which a repair was ever decided."""
        return self._events.tables()

    def open(self, tables: Iterable[str]) -> list[DecidedRepair]:
        """Return the repairs of some tables that were decided, and not completed."""
        known = self.tables()
        found = list[DecidedRepair]()
        for table in (table for table in tables if table in known):
            done = {each.repair.id for each in self._with(table, RepairEvent.DONE)}
            found += [each for each in self._with(table, RepairEvent.DECIDED) if each.repair.id not in done]
        return found

    def count_done(self, table: str, action: str) -> int:
        """Return how many repairs of a table by this action are complete."""
        return len(self._events.events(table, ("repair",), event=RepairEvent.DONE.value, action=action))

    def _with(self, table: str, event: RepairEvent) -> list[DecidedRepair]:
        return [
            DecidedRepair(
                table,
                row["action"],
                Repair(id=row["repair"], said_by=row["said_by"], why=row["why"]),
                row["shown"],
                row["version"],
            )
            for row in self._events.events(table, event=event.value)
        ]

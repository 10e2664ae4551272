"""`ops.holds`: the tables whose old versions must stay, for whom and why; append-only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import pyarrow as pa

from millrace.contracts.time_format import MINUTE
from millrace.control.ledger.ops_table import OpsTable
from millrace.paths import LakehousePaths

HOLDS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("table", pa.string()),
        ("hold", pa.string()),
        ("said_by", pa.string()),
        ("why", pa.string()),
    ]
)


class HoldEvent(StrEnum):
    """An event of a hold: it keeps the old versions of a table from `set` to `released`."""

    SET = "set"
    RELEASED = "released"


@dataclass(frozen=True)
class Hold:
    """A hold on one table: nothing of it is deleted until somebody releases the hold.

    Attributes:
        name: the name of the hold, such as that of a case; several tables may have the same.
        table: the table.
        since: when it was set.
        said_by: who set it.
        why: the reason.
    """

    name: str
    table: str
    since: datetime
    said_by: str
    why: str

    @property
    def words(self) -> str:
        """The hold in words, without its table."""
        return f"{self.said_by} holds it since {self.since:{MINUTE}} for {self.name}: {self.why}"


class Holds:
    """Reads and writes `ops.holds` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "holds", HOLDS)

    def on(self, table: str) -> list[Hold]:
        """Return the holds on a table, oldest first."""
        holds: dict[str, Hold] = {}
        for row in self._events.events(table):
            if row["event"] == HoldEvent.RELEASED:
                holds.pop(row["hold"], None)
            else:
                found = Hold(row["hold"], table, row["recorded_at"], row["said_by"], row["why"])
                holds.setdefault(found.name, found)
        return list(holds.values())

    def active(self) -> list[Hold]:
        """Return the holds on all tables, by table."""
        return [hold for table in sorted(self._events.tables()) for hold in self.on(table)]

    def record(self, event: HoldEvent, name: str, tables: Sequence[str], *, said_by: str, why: str) -> None:
        """Record that a person sets or releases a hold on tables."""
        row = {"event": event.value, "hold": name, "said_by": said_by, "why": why}
        self._events.append([{**row, "table": table} for table in tables])

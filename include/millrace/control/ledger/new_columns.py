"""`ops.columns`: the fields of records without a declared column, and the decision about each field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from millrace.contracts.spec.values import NAME
from millrace.control.ledger.ops_table import OpsTable
from millrace.errors import BadInputError
from millrace.paths import LakehousePaths

COLUMNS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("table", pa.string()),
        ("column", pa.string()),
        ("run_id", pa.string()),
        ("said_by", pa.string()),
    ]
)


class ColumnState(StrEnum):
    """The state of a new column: its last event. An approval is final: no run ever removes a column from a table."""

    PROPOSED = "proposed"
    ASKED = "asked"
    APPROVED = "approved"
    REFUSED = "refused"


OPEN = (ColumnState.PROPOSED, ColumnState.ASKED)
"""The states in which nobody has decided yet."""


@dataclass(frozen=True)
class NewColumn:
    """A field without a declared column.

    Attributes:
        name: the name of the field, and of its column.
        state: the state.
        since: the time of the state's event.
        run_id: the run that recorded the event.
        said_by: the person who decided, or the policy of the spec; empty while nobody has decided.
    """

    name: str
    state: ColumnState
    since: datetime
    run_id: str
    said_by: str


class NewColumns:
    """Reads and writes `ops.columns` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "columns", COLUMNS)

    def tables(self) -> set[str]:
        """Return the tables about which something was ever asked."""
        return self._events.tables()

    def record(self, state: ColumnState, table: str, names: Iterable[str], *, run_id: str, said_by: str = "") -> None:
        """Record the state of the columns `names` of `table`.

        Raises:
            BadInputError: a name is no valid column name. Names come from records and become part of SQL.
        """
        names = list(names)
        if invalid := [name for name in names if not re.fullmatch(NAME, name)]:
            raise BadInputError(f"{invalid[0]!r} is no name of a column of {table}")
        event = {"event": state.value, "table": table}
        self._events.append([{**event, "column": name, "run_id": run_id, "said_by": said_by} for name in names])

    def of(self, table: str, *states: ColumnState) -> list[NewColumn]:
        """Return the new columns of a table in the order of their first event; with `states`, only those in a state."""
        last: dict[str, dict[str, Any]] = {}
        for row in self._events.events(table):
            before = last.get(row["column"])
            if before is None or before["event"] != ColumnState.APPROVED:
                last[row["column"]] = row
        columns = [
            NewColumn(name, ColumnState(row["event"]), row["recorded_at"], row["run_id"], row["said_by"])
            for name, row in last.items()
        ]
        return [column for column in columns if not states or column.state in states]

"""`ops.columns`: the fields that records brought and no column is declared for, and what was decided about each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from include.contracts.spec.values import NAME
from include.control.ledger.ops_table import OpsTable
from include.errors import BadInputError
from include.paths import LakehousePaths

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
    """Where a new column stands: the last thing that was said of it, but an approval is for good.

    Its table has the column from then on, and no run ever takes one away.
    """

    PROPOSED = "proposed"
    ASKED = "asked"
    APPROVED = "approved"
    REFUSED = "refused"


OPEN = (ColumnState.PROPOSED, ColumnState.ASKED)
"""Nobody has decided yet."""


@dataclass(frozen=True)
class NewColumn:
    """A field that no column is declared for.

    Attributes:
        name: of the field, and of the column that it becomes.
        state: where it stands.
        since: when that was said.
        run_id: the run in which it was said.
        said_by: who decided: a person, or the policy of the spec; empty while nobody has.
    """

    name: str
    state: ColumnState
    since: datetime
    run_id: str
    said_by: str


class NewColumns:
    """Reads and writes `ops.columns` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable(paths.ops("columns"), COLUMNS)

    def record(self, state: ColumnState, table: str, names: Iterable[str], *, run_id: str, said_by: str = "") -> None:
        """Write down that the columns `names` of `table` stand so from now on.

        Raises:
            BadInputError: one of them is no name of a column; names come from records, and end in SQL.
        """
        names = list(names)
        if unfit := [name for name in names if not re.fullmatch(NAME, name)]:
            raise BadInputError(f"{unfit[0]!r} is no name of a column of {table}")
        said = {"recorded_at": datetime.now(UTC), "event": state.value, "table": table}
        self._events.append([{**said, "column": name, "run_id": run_id, "said_by": said_by} for name in names])

    def of(self, table: str, *states: ColumnState) -> list[NewColumn]:
        """The table's new columns that stand in one of `states` (in any, for none), in the order they came up."""
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

"""Rows and bytes of a table's newest version: a part of its state, so that a listing opens no table (ADR 25)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import TableNotFoundError

from include.contracts.lake_path import LakePath
from include.control.commit_mark import commit_mark
from include.control.stored_tables import open_table
from include.control.table_state import StatePart


class Measures(StatePart):
    """How large a table is.

    Attributes:
        version: its version.
        mark: digest of the commit that made it.
        rows: how many rows; None where a file states no count.
        size: bytes of its data files.
    """

    version: int
    mark: str
    rows: int | None
    size: int

    def is_newest(self, table: LakePath) -> bool:
        """Whether the table that lies there now is at this very version."""
        return commit_mark(table, self.version) == self.mark != "" and not commit_mark(table, self.version + 1)


def measured(table: LakePath) -> Measures | None:
    """Measure the newest version, by its log alone; None where there is no table."""
    try:
        delta = open_table(table)
    except TableNotFoundError:
        return None
    files = pa.table(delta.get_add_actions(flatten=True))
    counts = files["num_records"] if files.num_rows else pa.array([], pa.int64())
    return Measures(
        table_id=str(delta.metadata().id),
        version=delta.version(),
        mark=commit_mark(table, delta.version()),
        rows=None if counts.null_count else pc.sum(counts).as_py() or 0,
        size=pc.sum(files["size_bytes"]).as_py() if files.num_rows else 0,
    )

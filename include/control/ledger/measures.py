"""Rows and bytes of a table's newest version: a part of its state, so that a listing opens no table (ADR 25)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import TableNotFoundError

from include.contracts.lake_path import LakePath
from include.control.ledger.table_state import StatePart
from include.control.log.delta_log import commit_mark
from include.control.log.followed_tables import newest_table, sizes_at


class Measures(StatePart):
    """How large a table is.

    Attributes:
        version: its version.
        mark: digest of the commit that made it.
        rows: how many rows; None where a file states no count.
        size: bytes of its data files.
        rescued: how many rows have a value in `_rescued`; None where a file does not state that.
    """

    version: int
    mark: str
    rows: int | None
    size: int
    rescued: int | None = None

    def is_newest(self, table: LakePath) -> bool:
        """Whether the table that lies there now is at this very version."""
        return commit_mark(table, self.version) == self.mark != "" and not commit_mark(table, self.version + 1)


def measured(table: LakePath) -> Measures | None:
    """Measure the newest version, by its log alone; None where there is no table."""
    try:
        sizes = sizes_at(table, newest_table(table).version())
    except TableNotFoundError:
        return None
    rows = _sum(sizes.files, "num_records")
    unset = _sum(sizes.files, "null_count._rescued")
    return Measures(
        table_id=sizes.table_id,
        version=sizes.version,
        mark=sizes.mark,
        rows=rows,
        size=_sum(sizes.files, "size_bytes") or 0,
        rescued=None if rows is None or unset is None else rows - unset,
    )


def table_rows(table: LakePath, version: int) -> int:
    """The rows of one version, from the statistics of its data files; nothing is scanned."""
    files = sizes_at(table, version).files
    return int(pc.sum(files["num_records"]).as_py() or 0) if files.num_rows else 0


def newest_of(kept: Measures | None, now: Measures | None) -> Measures | None:
    """What counts of two measures: the one of the later version, or of the table that lies there now."""
    is_later = kept is not None and now is not None and kept.table_id == now.table_id and kept.version > now.version
    return kept if is_later else now


def _sum(files: pa.Table, column: str) -> int | None:
    """The sum over all files; None where one does not state it."""
    if column not in files.column_names:
        return None if files.num_rows else 0
    stated = files[column]
    return None if stated.null_count else int(pc.sum(stated, min_count=0).as_py())

"""What is known of a table from its Delta log alone: version, rows, size. No Spark."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from include.contracts.lake_path import LakePath
from include.contracts.row_status import PENDING
from include.control.gate_result import Override
from include.control.gates import Gates
from include.control.quarantined import count_by_status
from include.control.stored_tables import is_table, open_table
from include.errors import MillraceError
from include.paths import LakehousePaths


@dataclass(frozen=True)
class TableFacts:
    """One table as it lies on disk; all None where it was never built.

    Attributes:
        table: the table.
        version: its newest version.
        certified_version: the version that readers may use.
        rows: rows of the newest version; None too where a file states no count.
        bytes: size of the files of the newest version.
        quarantined: rows that wait in its quarantine, neither replayed nor discarded.
        override: by whose word the certified version may be read though the rules refused it; None where they did not.
        damage: why the table cannot be read; empty for a sound one.
    """

    table: str
    version: int | None = None
    certified_version: int | None = None
    rows: int | None = None
    bytes: int | None = None
    quarantined: int | None = None
    override: Override | None = None
    damage: str = ""


def table_facts(table: str, root: LakePath) -> TableFacts:
    """Look at one table of the lakehouse under `root`; one that cannot be read says why, and stops no other."""
    try:
        return _facts(table, LakehousePaths(root))
    except MillraceError as error:
        return TableFacts(table, damage=str(error))


def _facts(table: str, paths: LakehousePaths) -> TableFacts:
    if not is_table(paths.table(table)):
        return TableFacts(table)
    delta = open_table(paths.table(table))
    rows, size = _rows_and_bytes(delta)
    standing, gates = count_by_status(table, paths), Gates(paths)
    overridden = gates.override_in_force(table)
    return TableFacts(
        table=table,
        version=delta.version(),
        certified_version=gates.certified(table),
        rows=rows,
        bytes=size,
        quarantined=sum(standing[status] for status in PENDING),
        override=overridden.override if overridden else None,
    )


def _rows_and_bytes(delta: DeltaTable) -> tuple[int | None, int]:
    files = pa.table(delta.get_add_actions(flatten=True))
    if files.num_rows == 0:
        return 0, 0
    counts = files["num_records"]
    rows = None if counts.null_count else pc.sum(counts).as_py()
    return rows, pc.sum(files["size_bytes"]).as_py()

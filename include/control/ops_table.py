"""One append-only table of the ledger, written and read by delta-rs only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

FILES_WORTH_COMPACTING = 50
"""Each append is a file; from so many on they are put together."""

# delta-rs rebases appends by itself; what is left is the race of two writers that create the table.
_when_another_writer_won = retry(
    retry=retry_if_exception_type(CommitFailedError),
    stop=stop_after_attempt(8),
    wait=wait_random_exponential(multiplier=0.05, max=1),
    reraise=True,
)


class OpsTable:
    """Events of one kind, partitioned by the table that they are about.

    Data files never change, so each is read once in the life of this object: a second look costs what was appended
    since the first.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._schema = schema
        self._delta: DeltaTable | None = None
        self._rows_of_file: dict[str, pa.Table] = {}

    @_when_another_writer_won
    def append(self, events: Sequence[dict[str, Any]]) -> None:
        """Append `events` in one commit; nothing is written for none."""
        if not events:
            return
        rows = pa.Table.from_pylist(list(events), schema=self._schema)
        # Merged: a ledger of an earlier version takes on the columns that came since.
        write_deltalake(self._target(), rows, mode="append", schema_mode="merge", partition_by=["table"])

    def events(self, table: str, columns: Sequence[str] = (), **equals: str) -> list[dict[str, Any]]:
        """As `event_columns`, one dictionary an event."""
        found: list[dict[str, Any]] = self.event_columns(table, columns, **equals).to_pylist()
        return found

    def event_columns(self, table: str, columns: Sequence[str] = (), **equals: str) -> pa.Table:
        """The events about `table` whose columns equal `equals`, oldest first.

        Args:
            table: the table that the events are about.
            columns: the columns to give, all for none: of 100,000 events each one costs.
            equals: column -> the value that it must have.
        """
        files = self._files(table)
        self._read([file for file in files if file not in self._rows_of_file], table)
        rows = pa.concat_tables([self._schema.empty_table(), *(self._rows_of_file[file] for file in files)])
        rows = rows.select(sorted({*(columns or rows.column_names), *equals, "recorded_at"}))
        for column, value in equals.items():
            rows = rows.filter(pc.equal(rows[column], pa.scalar(str(value))))
        return rows.sort_by("recorded_at").select(columns or self._schema.names)

    @_when_another_writer_won
    def compact(self, table: str) -> None:
        """Put the many small files about `table` together; the events stay as they are."""
        if len(self._files(table)) >= FILES_WORTH_COMPACTING:
            DeltaTable(str(self._path)).optimize.compact(partition_filters=[("table", "=", table)])

    def _files(self, table: str) -> list[str]:
        try:
            self._refresh()
        except TableNotFoundError:
            return []
        return self._delta.file_uris(partition_filters=[("table", "=", table)]) if self._delta else []

    def _refresh(self) -> None:
        if self._delta is None:
            self._delta = DeltaTable(str(self._path))
        else:
            self._delta.update_incremental()

    def _target(self) -> DeltaTable | str:
        """The table as this object knows it, which saves reading its log again; its path while there is none."""
        try:
            self._refresh()
        except TableNotFoundError:
            return str(self._path)
        return self._delta or str(self._path)

    def _read(self, files: list[str], table: str) -> None:
        stored = pa.schema([field for field in self._schema if field.name != "table"])
        for file in files:
            # delta-rs names files by URL: a space in the lakehouse's path is %20 there.
            rows = ds.dataset(unquote(file), schema=stored, format="parquet").to_table()
            named = rows.append_column("table", pa.repeat(pa.scalar(table), len(rows)))
            self._rows_of_file[file] = named.select(self._schema.names)

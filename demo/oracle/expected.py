"""Compute the expected tables from the landing files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from demo.oracle.comparison import Comparison, checksums, compare
from demo.oracle.definitions import BRONZE_COLUMNS, DEFINITIONS


@dataclass(frozen=True)
class Oracle:
    """The expected tables; ``connection`` has each as ``<layer>.<table>``, in UTC."""

    connection: duckdb.DuckDBPyConnection

    def count(self, table: str) -> int:
        """Return the expected number of rows of a table; bronze has all delivered rows, copies included."""
        return len(self.connection.table(table))

    def counts(self) -> dict[str, int]:
        """Return the number of rows of every table."""
        return {table: self.count(table) for table in (*BRONZE_COLUMNS, *DEFINITIONS)}

    def checksums(self, table: str) -> dict[str, int | None]:
        """Return a few exact figures of a silver or gold table, by name; None is the sum of no values."""
        return checksums(self.connection, table, table)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of a table as dicts, ordered by its columns; an instant is a datetime in UTC."""
        rows: list[dict[str, Any]] = self.connection.execute(f"FROM {table} ORDER BY ALL").to_arrow_table().to_pylist()
        return rows

    def compare(self, table: str, actual: pa.Table) -> Comparison:
        """Compare a silver or gold table, as Arrow, with its expected rows.

        Raises:
            KeyError: ``actual`` lacks a column of the definition.
        """
        return compare(self.connection, table, actual)


def expected_tables(landing: Path, start: date, end: date) -> Oracle:
    """Compute every table as it must be when the days [start, end) of ``landing`` are loaded.

    Raises:
        FileNotFoundError: a day of a feed has not been laid out.
    """
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    connection.execute("CREATE SCHEMA bronze; CREATE SCHEMA silver; CREATE SCHEMA gold")
    days = [start + timedelta(days=n) for n in range((end - start).days)]
    for table in BRONZE_COLUMNS:
        feed = table.removeprefix("bronze.")
        files = [file for day in days for file in _files(landing / feed / f"date={day}")]
        _load(connection, table, files)
    for table, definition in DEFINITIONS.items():
        connection.execute(f"CREATE TABLE {table} AS {definition}")
    return Oracle(connection)


def _files(folder: Path) -> Iterator[str]:
    files = sorted(str(file) for file in folder.glob("[!.]*"))
    if not files:
        raise FileNotFoundError(f"no landing files in {folder}: lay that day out first (python -m demo.source_system)")
    yield from files


def _load(connection: duckdb.DuckDBPyConnection, table: str, files: list[str]) -> None:
    """Load files as a bronze table with the types of silver; an invalid value is an error."""
    is_json = files[0].endswith(".json.gz")
    read = "read_json" if is_json else "read_csv"
    layout = "format = 'newline_delimited'" if is_json else "header = true"
    connection.execute(
        f"CREATE TABLE {table} AS "
        f"FROM {read}({files}, columns = {BRONZE_COLUMNS[table]}, {layout}, hive_partitioning = false)"
    )

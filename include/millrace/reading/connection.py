"""A DuckDB connection with a view for each certified table, named as in the specs: `silver.flights`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from millrace.control.log.stored_tables import tables_in
from millrace.reading.certified import CertifiedTable, certified_tables, lakehouse_at
from millrace.reading.duckdb_in_utc import all_columns, duckdb_in_utc

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def connect(root: object = None, *, at: datetime | None = None) -> DuckDBPyConnection:
    """Return a DuckDB connection in UTC with a view for each table of a lakehouse that has a certified version.

    The versions are read once, here. The views stay on them as long as the connection lives. A table without one, or a
    damaged table, has no view: `certified` says why.

    Args:
        root: the lakehouse, a folder or `s3://bucket/prefix`; by default `LAKEHOUSE_ROOT`.
        at: a time with an offset from UTC; the views have the versions that were certified then.
    """
    paths = lakehouse_at(root)
    versions, _ = certified_tables(tables_in(paths.root), paths, at=at)
    return connection_of(versions.values())


def connection_of(versions: Iterable[CertifiedTable]) -> DuckDBPyConnection:
    """Return a DuckDB connection in UTC with a view for each of these versions."""
    connection = duckdb_in_utc()
    for version in versions:
        layer, name = version.table.split(".")
        selects = []
        for at, (rows, unfit) in enumerate(version.parts):
            part = f"{version.table} {at}" if at else version.table
            connection.register(part, rows)
            selects.append(f'SELECT {all_columns(unfit)} FROM "{part}"')
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {layer}")
        connection.execute(f'CREATE VIEW {layer}."{name}" AS {" UNION ALL ".join(selects)}')
    return connection

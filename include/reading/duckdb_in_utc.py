"""New DuckDB connections, which show times in UTC as everything in Millrace does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.errors import QueryError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def duckdb_in_utc() -> DuckDBPyConnection:
    """Return a new connection to a DuckDB in memory.

    Raises:
        QueryError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError as error:
        raise QueryError("the package duckdb is not installed", "pip install duckdb") from error
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection

"""Read Millrace's tables with DuckDB, as any reader would: the certified version, and no newer one."""

from __future__ import annotations

import duckdb

from millrace.contracts.lake_path import LakePath
from millrace.control.views.duckdb_file import delta_extension


def delta_reader() -> duckdb.DuckDBPyConnection:
    """Return a connection in UTC that can read Delta tables.

    Raises:
        FileNotFoundError: the extension of DuckDB's own version is not installed.
    """
    extension = delta_extension()
    if extension is None:
        msg = f"no Delta extension for DuckDB {duckdb.__version__}: run `make setup`"
        raise FileNotFoundError(msg)
    # A check of the extension's signature takes a third of a second; its wheel's hash was checked.
    connection = duckdb.connect(config={"allow_unsigned_extensions": True})
    connection.load_extension(str(extension))
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def at_version(table: LakePath, version: int) -> str:
    """Return one version of a table as a relation for DuckDB's SQL."""
    return f"delta_scan('{table}', version = {version})"

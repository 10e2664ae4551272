"""Read Millrace's tables with DuckDB, as any reader would: the certified version, and no newer one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import duckdb

from include.contracts.lake_path import LakePath


def delta_extension() -> Path:
    """Return the file of DuckDB's Delta extension, which a wheel of PyPI installed, so that nothing is downloaded.

    Raises:
        FileNotFoundError: the wheel `duckdb-extension-delta` of DuckDB's own version is not installed.
    """
    spec = find_spec("duckdb_extension_delta")
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        file = Path(folder) / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension"
        if file.exists():
            return file
    msg = f"no Delta extension for DuckDB {duckdb.__version__}: run `make setup`"
    raise FileNotFoundError(msg)


def delta_reader() -> duckdb.DuckDBPyConnection:
    """Return a connection in UTC that can read Delta tables."""
    connection = duckdb.connect()
    connection.load_extension(str(delta_extension()))
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def at_version(table: LakePath, version: int) -> str:
    """Return one version of a table as a relation for DuckDB's SQL."""
    return f"delta_scan('{table}', version = {version})"

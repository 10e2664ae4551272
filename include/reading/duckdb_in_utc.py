"""New DuckDB connections, which show times in UTC as everything in Millrace does, and what they read of a dataset."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa

from include.control.log.table_queries import identifiers
from include.errors import QueryError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def duckdb_in_utc() -> DuckDBPyConnection:
    """Return a new connection to a DuckDB in memory.

    Raises:
        QueryError: DuckDB is not installed, or pytz: without it, a join of times ends the process.
    """
    try:
        import duckdb

        import_module("pytz")
    except ImportError as error:
        raise QueryError(f"the package {error.name} is not installed", "pip install duckdb pytz") from error
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def all_columns(schema: pa.Schema) -> str:
    """Return the list of a SELECT with all columns of a dataset, whose filters find NaN.

    DuckDB 1.5 lets Arrow filter, to which NaN is not greater than any number, as it is to DuckDB and Spark. A filter on
    an expression stays with DuckDB. (DuckDB 2.0 needs this no more.)

    >>> all_columns(pa.schema([("n", pa.int64()), ("x", pa.float64())]))
    '* REPLACE (CASE WHEN "x" IS NULL THEN NULL ELSE "x" END AS "x")'
    >>> all_columns(pa.schema([("n", pa.int64())]))
    '*'
    """
    names = [identifiers([name]) for name in float_columns(schema)]
    kept = ", ".join(f"CASE WHEN {name} IS NULL THEN NULL ELSE {name} END AS {name}" for name in names)
    return f"* REPLACE ({kept})" if kept else "*"


def float_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that are floating point numbers, or structs with such fields: Arrow misjudges their NaN."""
    return [field.name for field in schema if _has_floats(field.type)]


def _has_floats(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_floats(field.type) for field in kind)
    return bool(pa.types.is_floating(kind))

"""New DuckDB connections, which show times in UTC as everything in Millrace does, and what they select of a dataset."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from millrace.control.log.table_queries import identifiers
from millrace.errors import QueryError

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


@contextmanager
def spilling_duckdb(memory: str = "1GB") -> Iterator[DuckDBPyConnection]:
    """Yield a new connection that takes so much memory, and writes what does not fit to a folder of its own.

    Raises:
        QueryError: as `duckdb_in_utc`.
    """
    with TemporaryDirectory() as scratch, duckdb_in_utc() as connection:
        connection.execute(f"SET memory_limit = '{memory}'")
        connection.execute("SET temp_directory = ?", [scratch])
        yield connection


def all_columns(unfit: Collection[str]) -> str:
    """Return the list of a SELECT with all columns of a dataset, of which Arrow filters by none of the named ones.

    DuckDB 1.5 lets Arrow filter. A filter on an expression stays with DuckDB. A field of a struct is the expression
    that copies no values. (DuckDB 2.0 needs this no more.)

    >>> all_columns(["x"])
    '* REPLACE (struct_pack(v := "x").v AS "x")'
    >>> all_columns([])
    '*'
    """
    names = [identifiers([name]) for name in sorted(unfit)]
    kept = ", ".join(f"struct_pack(v := {name}).v AS {name}" for name in names)
    return f"* REPLACE ({kept})" if kept else "*"

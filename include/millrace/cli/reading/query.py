"""`lakehouse query`: one SQL query over the certified versions, in a DuckDB that can reach nothing else."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from millrace.cli.catalog import command_catalog
from millrace.cli.output import console, show, show_problem
from millrace.cli.reading.rows import first_rows, result_table, write_csv, write_json, write_parquet
from millrace.contracts.counted import counted
from millrace.contracts.time_format import MINUTE
from millrace.control.log.stored_tables import tables_in
from millrace.errors import MillraceError, NotReadyError, QueryError, StorageError, first_line
from millrace.reading.certified import CertifiedTable, certified_tables
from millrace.reading.connection import connection_of
from millrace.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

_ALLOWED = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_ONE_QUERY = "Write one query: SELECT, FROM, WITH, VALUES, PIVOT, DESCRIBE, SUMMARIZE, SHOW TABLES or EXPLAIN."
_LOCK = """
    SET python_enable_replacements = false;
    SET autoinstall_known_extensions = false;
    SET autoload_known_extensions = false;
    SET enable_external_access = false;
    SET lock_configuration = true;
"""
"""No query reaches a file, another host, an extension or a variable of this process, or changes that."""
_TRIES = 5
"""How often a failed query runs again for its cause: each time it comes with more than 99 in 100."""


@dataclass(frozen=True)
class Output:
    """The options of the command.

    Attributes:
        limit: the most rows that a terminal shows; 0 for all.
        as_csv: whether to write CSV to stdout, as is done without a terminal.
        as_json: whether to write JSON to stdout.
        parquet: the file to write.
    """

    limit: int = 40
    as_csv: bool = False
    as_json: bool = False
    parquet: Path | None = None


@dataclass(frozen=True)
class Query:
    """A query, and what it reads.

    Attributes:
        sql: one statement that reads, without a semicolon at its end.
        connection: the locked DuckDB.
        versions: the tables that it reads, or may read, at their certified versions.
        missing: each table that cannot be read, mostly because it has no certified version -> the reason.
        settings: the settings of the lakehouse.
    """

    sql: str
    connection: duckdb.DuckDBPyConnection
    versions: Mapping[str, CertifiedTable]
    missing: Mapping[str, MillraceError]
    settings: Settings

    @contextmanager
    def rows(self) -> Iterator[pa.RecordBatchReader]:
        """Run the query, and yield its rows as they come.

        Raises:
            QueryError: DuckDB refuses the query, or it fails.
            NotReadyError: it names a table without a certified version.
            StorageError: a data file cannot be read.
        """
        try:
            reader = self.connection.execute(self.sql).to_arrow_reader()
            yield pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        except duckdb.CatalogException as error:
            raise self._unknown_table(error) from error
        except duckdb.PermissionException as error:
            cause = "a query reads the tables of the lakehouse, and no file or other place"
            raise QueryError(cause, first_line(error)) from error
        except duckdb.InvalidInputException as error:
            raise _failure(error) from error
        except duckdb.Error as error:
            raise QueryError(f"the query failed: {first_line(error)}", *str(error).split("\n")[1:]) from error

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a query, whose failure after the first of them comes from Arrow as an `OSError`."""
        try:
            yield from reader
        except OSError as error:
            raise _failure(self.cause_of(error)) from error

    def cause_of(self, error: Exception) -> Exception:
        """Return why the query failed.

        Once in some hundred failures on a busy machine, DuckDB says only that it has interrupted its other threads. The
        query then runs again, on the same versions, to find the cause; in all threads, as the configuration is locked.
        """
        if "INTERRUPT" not in str(error):
            return error
        causes = (self._failure_again() for _ in range(_TRIES))
        return next((cause for cause in causes if cause is None or "INTERRUPT" not in str(cause)), None) or error

    def _failure_again(self) -> Exception | None:
        """Run the query, and return its error; None if it ends well."""
        try:
            for _ in self.connection.execute(self.sql).to_arrow_reader():
                pass
        except (duckdb.Error, OSError) as cause:
            return cause
        return None

    def count(self) -> int | None:
        """Return the number of rows; None if it cannot be counted."""
        try:
            counted = self.connection.execute(f"SELECT count(*) FROM (\n{self.sql}\n)").fetchone()
        except duckdb.Error:
            return None
        return int(counted[0]) if counted else None

    def snapshot(self) -> list[str]:
        """Return a line for each table that the query names: its version, and when it was certified."""
        return [
            f"{table}: version {version.version}, certified {version.certified_at:{MINUTE}} UTC"
            if version.certified_at
            else f"{table}: version {version.version}"
            for table, version in self.versions.items()
        ]

    def _unknown_table(self, error: duckdb.CatalogException) -> MillraceError:
        named = [reason for table, reason in self.missing.items() if _is_named(table, self.sql)]
        if named:
            return named[0]
        specs = command_catalog(self.settings.tables).tables
        unbuilt = [table for table in specs if _is_named(table, self.sql) and table not in self.versions]
        if unbuilt:
            command = f"`lakehouse run --table {unbuilt[0]} --interval DAY`"
            return NotReadyError(f"{unbuilt[0]} was not built yet", f"{command} builds it.")
        return QueryError(first_line(error), *str(error).split("\n")[1:], "`lakehouse tables` lists the tables.")


def _failure(error: Exception) -> MillraceError:
    if "arrow_scan" not in str(error):
        return QueryError(f"the query failed: {first_line(error)}")
    way_out = "If the file is gone, VACUUM has deleted it: read a later version."
    return StorageError(f"a data file cannot be read: {first_line(error)}", way_out)


def open_query(sql: str, settings: Settings, at: datetime | None = None) -> Query:
    """Read the certified versions that a query needs, once, and return the query.

    Raises:
        QueryError: it is not one statement that reads, or `at` has no offset from UTC.
    """
    statement = _statement(sql)
    tables = tables_in(settings.root)
    # DuckDB's own list of names fails for PIVOT and for JOIN ... USING. A table too many costs little.
    named = [table for table in tables if _is_named(table, statement)]
    versions, missing = certified_tables(named or tables, settings.paths, at=at)
    connection = connection_of(versions.values())
    connection.execute(_LOCK)
    return Query(statement, connection, versions, missing, settings)


def _is_named(table: str, sql: str) -> bool:
    return all(part in sql.lower() for part in table.split("."))


def _statement(sql: str) -> str:
    """Return the statement without its semicolon.

    Raises:
        QueryError: it is not one statement that reads.
    """
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(first_line(error), *str(error).split("\n")[1:]) from error
    # PIVOT comes with a statement that DuckDB makes itself; it has no text.
    written = [
        statement for statement in statements if statement.type != duckdb.StatementType.CREATE or statement.query
    ]
    if len(written) != 1:
        raise QueryError(f"there are {len(written)} statements in the query", _ONE_QUERY)
    if written[0].type not in _ALLOWED:
        raise QueryError(f"the query does not only read: it is a statement {written[0].type.name}", _ONE_QUERY)
    return sql.strip().rstrip("; \n\t")


def run_query(query: Query, output: Output) -> None:
    """Run a query, and write its rows where the options of the command say.

    Raises:
        QueryError: the query fails, its rows have no such form, or the file is one of the lakehouse.
        NotReadyError: it names a table without a certified version.
    """
    if output.parquet:
        _require_outside(output.parquet, query.settings)
    with query.rows() as rows:
        if sys.stdout.isatty() or output.parquet:
            for line in query.snapshot():
                show_problem(line)
        if output.parquet:
            show(f"wrote {counted(write_parquet(rows, output.parquet), 'row')} to {output.parquet}")
        elif output.as_json:
            write_json(rows, sys.stdout.buffer)
        elif output.as_csv or not sys.stdout.isatty():
            write_csv(rows, sys.stdout.buffer)
        else:
            _show_rows(query, rows, output.limit)


def _require_outside(file: Path, settings: Settings) -> None:
    """Check that a file is not in the lakehouse's folder, where it could replace a data file of a table.

    Raises:
        QueryError: it is.
    """
    root = settings.root
    if isinstance(root, Path) and file.resolve().is_relative_to(root.resolve()):
        raise QueryError(f"{file} is in the lakehouse's own folder {root}", "Name a file elsewhere.")


def _show_rows(query: Query, rows: pa.RecordBatchReader, limit: int) -> None:
    shown = first_rows(rows, limit + 1 if limit else 0)
    is_cut = bool(limit) and shown.num_rows > limit
    table, left_out = result_table(shown.slice(0, limit) if is_cut else shown, console().width)
    show(table)
    if left_out:
        show(f"{counted(len(left_out), 'more column does', 'more columns do')} not fit: {', '.join(left_out)}")
    if is_cut:
        count = query.count()
        more = "more rows" if count is None else counted(count - limit, "more row")
        show(f"... and {more}: `--limit 0` shows all, `--csv`, `--json` and `--parquet FILE` write all.")

"""Certified versions of tables, and their rows for Arrow, Polars, DuckDB and Spark.

`from millrace import certified` is the way in; see `docs/guides/read-a-table.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from millrace.contracts.lake_path import LakePath, lake_path
from millrace.contracts.spec.values import TABLE
from millrace.contracts.time_format import MINUTE
from millrace.control.gates.gates import Gates
from millrace.control.gates.verdicts import equal_versions
from millrace.control.ledger.resolution import table_id_at
from millrace.control.log.delta_log import commit_mark
from millrace.control.log.stored_tables import is_table, open_table, tables_in, torn_log
from millrace.errors import MillraceError, NotReadyError, QueryError, UnknownNameError, first_line
from millrace.paths import LakehousePaths
from millrace.reading.datasets import Part, dataset_of, filtered_parts
from millrace.reading.duckdb_in_utc import all_columns, duckdb_in_utc
from millrace.settings import Settings
from millrace.specs.problem import did_you_mean

if TYPE_CHECKING:
    import duckdb
    import polars
    import pyarrow.dataset as ds

_PLACES = "Set LAKEHOUSE_ROOT, or pass root=, to the folder or s3:// address of the lakehouse."


@dataclass(frozen=True)
class CertifiedTable:
    """A certified version of a table. What is read of it is the same, whatever is written or certified meanwhile.

    Attributes:
        table: the table.
        path: its folder, or its address in a bucket.
        version: the version; pass it with `path` to any Delta reader.
        certified_at: when its gate passed it, or a person let it pass; a version with exactly the same rows, for
            example after OPTIMIZE, has the time of the version that was checked. None if the ledger has lost it.
    """

    table: str
    path: LakePath
    version: int
    certified_at: datetime | None

    @cached_property
    def delta(self) -> DeltaTable:
        """The version, opened with delta-rs.

        Raises:
            NotReadyError: it is too old: Delta has removed its log.
            TornLogError: its log cannot be read.
        """
        try:
            return open_table(self.path, self.version)
        except DeltaError as error:
            if commit_mark(self.path, self.version):
                raise torn_log(self.path, error) from error
            cause = f"{self.table} version {self.version} can no longer be read: {first_line(error)}"
            raise NotReadyError(cause, "It is older than the table's retention. Read a later version.") from error

    def dataset(self) -> ds.Dataset:
        """Return the rows as an Arrow dataset, which reads only what a scan asks for."""
        return self._rows

    @cached_property
    def _rows(self) -> ds.FileSystemDataset:
        return dataset_of(self.delta, self.path)

    @cached_property
    def parts(self) -> list[Part]:
        """The rows in parts, of which DuckDB lets Arrow filter."""
        return filtered_parts(self.delta, self._rows)

    def arrow(self, **scan: Any) -> pa.Table:
        """Return the rows as an Arrow table; `columns` and `filter` are those of Arrow's `Dataset.to_table`."""
        return self.dataset().to_table(**scan)

    def duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of a DuckDB connection, or of a new one in UTC; DuckDB reads what it needs."""
        database = connection or duckdb_in_utc()
        parts = [database.from_arrow(rows).project(all_columns(unfit)) for rows, unfit in self.parts]
        return reduce(lambda one, other: one.union(other), parts)

    def polars(self) -> polars.LazyFrame:
        """Return the rows as a lazy frame of Polars."""
        try:
            import_module("polars")
        except ImportError as error:
            raise QueryError("the package polars is not installed", "pip install polars") from error
        from millrace.reading.polars_frame import frame_of

        return frame_of(filtered_parts(self.delta, self._rows, only_nan=True))

    def spark(self, session: Any) -> Any:
        """Return the rows as a DataFrame of a `SparkSession` that has Delta, and the credentials of the store."""
        place = re.sub("^s3://", "s3a://", str(self.path))
        return session.read.format("delta").option("versionAsOf", self.version).load(place)


def certified(table: str, root: object = None, *, at: datetime | None = None) -> CertifiedTable:
    """Return the certified version of a table.

    Args:
        table: its name, such as `silver.flights`.
        root: the lakehouse, a folder or `s3://bucket/prefix`; by default `LAKEHOUSE_ROOT`.
        at: a time with an offset from UTC; return the version that was certified then.

    Raises:
        UnknownNameError: there is no such table.
        NotReadyError: no version of it is certified, or none was at that time.
        QueryError: `at` has no offset, or `root` is not a place.
    """
    _require_offset(at)
    paths = lakehouse_at(root)
    return _certified(table, Gates(paths), paths, at)


def certified_tables(
    tables: Iterable[str], paths: LakehousePaths, *, at: datetime | None = None
) -> tuple[dict[str, CertifiedTable], dict[str, MillraceError]]:
    """Return the certified version of each table, opened, and for each table without one, or damaged, the reason.

    Raises:
        QueryError: `at` has no offset.
    """
    _require_offset(at)
    gates, versions, missing = Gates(paths), dict[str, CertifiedTable](), dict[str, MillraceError]()
    for table in tables:
        try:
            version = _certified(table, gates, paths, at)
            version.dataset()  # a version that cannot be opened is no version to read
            versions[table] = version
        except MillraceError as error:
            missing[table] = error
    return versions, missing


def lakehouse_at(root: object = None) -> LakehousePaths:
    """Return the paths of a lakehouse; by default of `LAKEHOUSE_ROOT`.

    Raises:
        QueryError: `root` is not a place.
    """
    if root is None:
        return Settings().paths
    try:
        return LakehousePaths(lake_path(root))
    except ValueError as error:
        raise QueryError(str(error), _PLACES) from error


def require_table(table: str, paths: LakehousePaths) -> None:
    """Check that a lakehouse has a table.

    Raises:
        UnknownNameError: it has not.
    """
    _require_name(table)
    if not is_table(paths.table(table)):
        known = tables_in(paths.root)
        raise UnknownNameError(
            f"there is no table {table} in {paths.root}", did_you_mean(table, known) if known else _PLACES
        )


def _require_name(table: str) -> None:
    if not TABLE.fullmatch(table):
        raise UnknownNameError(f"{table!r} is not the name of a table", "Write <layer>.<name>, as in silver.flights.")


def _require_offset(at: datetime | None) -> None:
    if at is not None and at.tzinfo is None:
        raise QueryError(f"the time {at} has no offset from UTC", f"Write {at.isoformat()}Z for UTC.")


def _certified(table: str, gates: Gates, paths: LakehousePaths, at: datetime | None) -> CertifiedTable:
    _require_name(table)
    found = _certified_now(table, gates, paths) if at is None else _certified_at(table, at, gates, paths)
    if found is not None:
        return found
    require_table(table, paths)
    if at is not None:
        raise NotReadyError(f"{table}: no version was certified at {at:{MINUTE}}", "Read a later time.")
    raise NotReadyError(f"{table}: no version is certified", *_ways_out(table, gates))


def _certified_now(table: str, gates: Gates, paths: LakehousePaths) -> CertifiedTable | None:
    verdicts = gates.verdicts(table)
    if verdicts is None or verdicts.certified is None:
        return None
    checked, recorded = verdicts.passed[-1].version, gates.newest_results(table)
    times = (entry.at for entry in recorded if entry.result.passed and entry.result.version == checked)
    return CertifiedTable(table, paths.table(table), verdicts.certified, next(times, None))


def _certified_at(table: str, at: datetime, gates: Gates, paths: LakehousePaths) -> CertifiedTable | None:
    path = paths.table(table)
    # The certified version never moves back, so it is the highest and not the last one.
    earlier = sorted(gates.passed_until(table, at), key=lambda recorded: recorded.result.version, reverse=True)
    newest = next((each for each in earlier if table_id_at(path, each.result.version) == each.result.table_id), None)
    if newest is None:
        return None
    version = newest.result.version
    # A later version with the same rows can be read for longer.
    return CertifiedTable(table, path, equal_versions(path, (version,), version).versions[-1], newest.at)


def _ways_out(table: str, gates: Gates) -> tuple[str, ...]:
    """Return why a table has no certified version, and what to do."""
    verdicts = gates.verdicts(table)
    if verdicts and verdicts.refused:
        return verdicts.refused.refused, f"`lakehouse gate show {table}` shows what failed."
    command = f"`lakehouse run --table {table} --interval DAY`"
    return (f"No gate has checked it yet: {command} does, and so does its gate's task.",)

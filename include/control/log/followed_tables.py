"""Tables that are read repeatedly: each thread opens them once, and then only reads their new commits.

To open a table, delta-rs reads all commits since the last checkpoint. This module instead compares the commit of the
cached version each time, to see whether the table is still the same.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from include.contracts.lake_path import LakePath
from include.control.log.delta_log import commit_mark, commit_versions
from include.control.log.stored_tables import identity, open_table

_MAX_TABLES, _MAX_SIZES = 32, 8
_COLUMNS = ("size_bytes", "num_records", "null_count._rescued")


@dataclass(frozen=True)
class Sizes:
    """The sizes of the data files of a version, from the log.

    Attributes:
        table_id: the Delta table id.
        version: the version.
        mark: the digest of its commit; empty if the log no longer has the commit.
        files: one row for each file: `size_bytes` and, if the log has them, `num_records` and the number of rows
            without `_rescued`.
    """

    table_id: str
    version: int
    mark: str
    files: pa.Table


class _Cache(threading.local):
    """The open tables of a thread with the mark of their version, and the last sizes by version and mark."""

    def __init__(self) -> None:
        self.tables: dict[LakePath, tuple[DeltaTable, str]] = {}
        self.sizes: dict[tuple[LakePath, int, str], Sizes] = {}


_cache = _Cache()


def newest_table(table: LakePath) -> DeltaTable:
    """Return the newest version of a table, for reading only; the next call may update the same object.

    Raises:
        TableNotFoundError: there is no table at the path.
        TornLogError: its log cannot be read.
    """
    if table in _cache.tables:
        delta, mark = _cache.tables[table]
        version = delta.version()
        versions = commit_versions(table, version - 1)
        if mark and versions[:1] == [version] and commit_mark(table, version) == mark:
            if versions[-1] > version:
                _cache_sizes(table, delta, mark)
                delta.update_incremental()
                _cache.tables[table] = delta, commit_mark(table, delta.version())
            return delta
    delta = open_table(table)
    while len(_cache.tables) >= _MAX_TABLES:
        del _cache.tables[next(iter(_cache.tables))]
    _cache.tables[table] = delta, commit_mark(table, delta.version())
    return delta


def sizes_at(table: LakePath, version: int) -> Sizes:
    """Return the sizes of the data files of a version.

    Raises:
        TableNotFoundError: there is no table at the path.
        DeltaError: Delta cannot read the version any more.
    """
    mark = commit_mark(table, version)
    if not mark:
        return _sizes(open_table(table, version), mark)
    key = (table, version, mark)
    if key not in _cache.sizes and (delta := newest_table(table)).version() == version:
        _cache_sizes(table, delta, mark)
    if key not in _cache.sizes:
        _cache_sizes(table, open_table(table, version), mark)
    return _cache.sizes[key]


def _cache_sizes(table: LakePath, delta: DeltaTable, mark: str) -> None:
    while len(_cache.sizes) >= _MAX_SIZES:
        del _cache.sizes[next(iter(_cache.sizes))]
    _cache.sizes[table, delta.version(), mark] = _sizes(delta, mark)


def _sizes(delta: DeltaTable, mark: str) -> Sizes:
    files = pa.table(delta.get_add_actions(flatten=True))
    columns = [name for name in _COLUMNS if name in files.column_names]
    return Sizes(identity(delta), delta.version(), mark, files.select(columns))

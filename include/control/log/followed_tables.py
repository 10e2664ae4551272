"""Tables of the layers that are looked at again and again: opened once a thread, and then followed by their commits.

delta-rs reads all commits since the last checkpoint to open a table. Here the commit of the version that is held is
looked at each time: it tells whether the table is still the same one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from include.contracts.lake_path import LakePath
from include.control.log.commit_mark import commit_mark
from include.control.log.delta_log import commit_versions
from include.control.log.stored_tables import identity, open_table

_MOST_TABLES, _MOST_SIZES = 32, 8
_WANTED = ("size_bytes", "num_records", "null_count._rescued")


@dataclass(frozen=True)
class Sizes:
    """What the log says of the data files of a version.

    Attributes:
        table_id: Delta's id of the table.
        version: the version.
        mark: digest of the commit that made it; empty where the log has forgotten it.
        files: a row a file: `size_bytes` and, where stated, `num_records` and how many rows lack `_rescued`.
    """

    table_id: str
    version: int
    mark: str
    files: pa.Table


class _Held(threading.local):
    """What this thread has open, and what it has measured last: of a version that is told by its commit."""

    def __init__(self) -> None:
        self.tables: dict[LakePath, tuple[DeltaTable, str]] = {}
        self.sizes: dict[tuple[LakePath, int, str], Sizes] = {}


_held = _Held()


def newest_table(table: LakePath) -> DeltaTable:
    """The newest version of a table, for questions about it before it is asked for again; never to write by.

    Raises:
        TableNotFoundError: there is none.
        TornLogError: its log cannot be read.
    """
    if table in _held.tables:
        delta, mark = _held.tables[table]
        version = delta.version()
        known = commit_versions(table, version - 1)
        if mark and known[:1] == [version] and commit_mark(table, version) == mark:
            if known[-1] > version:
                _measure(table, delta, mark)
                delta.update_incremental()
                _held.tables[table] = delta, commit_mark(table, delta.version())
            return delta
    delta = open_table(table)
    while len(_held.tables) >= _MOST_TABLES:
        del _held.tables[next(iter(_held.tables))]
    _held.tables[table] = delta, commit_mark(table, delta.version())
    return delta


def sizes_at(table: LakePath, version: int) -> Sizes:
    """The data files of one version.

    Raises:
        TableNotFoundError: there is no table.
        DeltaError: the version cannot be had any more.
    """
    mark = commit_mark(table, version)
    if not mark:
        return _sizes(open_table(table, version), mark)
    wanted = (table, version, mark)
    if wanted not in _held.sizes and (delta := newest_table(table)).version() == version:
        _measure(table, delta, mark)
    if wanted not in _held.sizes:
        _measure(table, open_table(table, version), mark)
    return _held.sizes[wanted]


def _measure(table: LakePath, delta: DeltaTable, mark: str) -> None:
    while len(_held.sizes) >= _MOST_SIZES:
        del _held.sizes[next(iter(_held.sizes))]
    _held.sizes[table, delta.version(), mark] = _sizes(delta, mark)


def _sizes(delta: DeltaTable, mark: str) -> Sizes:
    files = pa.table(delta.get_add_actions(flatten=True))
    wanted = [name for name in _WANTED if name in files.column_names]
    return Sizes(identity(delta), delta.version(), mark, files.select(wanted))

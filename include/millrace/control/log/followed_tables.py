"""Tables that are read repeatedly: each thread opens them once, and then only reads their new commits.

To open a table, delta-rs reads all commits since the last checkpoint, and to update one it reads each new commit twice.
This module instead compares the commit of the version that it knows each time, to see whether the table is still the
same, and applies the new commits itself. It opens the table again after a commit that changes its definition.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from millrace.contracts.lake_path import LakePath
from millrace.control.log.delta_log import Action, commit_mark, commit_versions, existing_actions
from millrace.control.log.log_state import LogState
from millrace.control.log.stored_tables import identity, logged_files, open_table
from millrace.control.storage.json_lines import json_object

_MAX_TABLES, _MAX_FILE_LISTS = 32, 8


class LoggedFile(NamedTuple):
    """What a log says of a data file.

    Attributes:
        size: its bytes.
        rows: the number of its rows; None if the log does not say so.
        unset: the number of its rows without a value in `_rescued`; None if the log does not say so.
    """

    size: int
    rows: int | None
    unset: int | None


@dataclass(eq=False)
class FollowedTable:
    """A version of a table.

    Attributes:
        path: the folder of the table.
        definition: the open table, for its columns, properties and protocol; it may be of an earlier version.
        version: the version.
        mark: the digest of its commit; empty if the log no longer has the commit.
        _state: its data files, and the numbers of the commits after the version of `definition`; None reads the files
            of `definition`.
    """

    path: LakePath
    definition: DeltaTable
    version: int
    mark: str
    _state: LogState[LoggedFile] | None = None

    @cached_property
    def table_id(self) -> str:
        """The id of the table."""
        return identity(self.definition)

    @property
    def created(self) -> datetime | None:
        """When the table with this id was created; None if Delta has not recorded it."""
        at: int | None = self.definition.metadata().created_time
        return None if at is None else datetime.fromtimestamp(at / 1000, UTC)

    @property
    def files(self) -> Mapping[str, LoggedFile]:
        """The data files from the log, by their names in it."""
        return self._log.files

    def transaction_version(self, app_id: str) -> int | None:
        """Return the last number of one of Delta's application ids; None if no commit has it."""
        if self._state and app_id in self._state.keys:
            return self._state.keys[app_id]
        try:
            return self.definition.transaction_version(app_id)
        except DeltaError:
            # delta-rs reads the log again for this, and Delta may have cleaned up the commits that it knows.
            return open_table(self.path, self.version).transaction_version(app_id)

    def after(self, actions: Sequence[Action], mark: str) -> FollowedTable | None:
        """Return the next version, after a commit with these actions; None if the table has to be opened again."""
        if any(kind in action for action in actions for kind in ("metaData", "protocol")):
            return None
        if not {action["remove"]["path"] for action in actions if "remove" in action} <= self.files.keys():
            return None
        state = self._log.after(self.version + 1, actions)
        return FollowedTable(self.path, self.definition, state.version, mark, state)

    @property
    def _log(self) -> LogState[LoggedFile]:
        if self._state is None:
            self._state = LogState(_file_of)
            self._state.files = _files_of(self.definition)
        return self._state


class _Cache(threading.local):
    """The open tables of a thread, and the last lists of files by version and mark."""

    def __init__(self) -> None:
        self.tables: dict[LakePath, FollowedTable] = {}
        self.files: dict[tuple[LakePath, int, str], FollowedTable] = {}


_cache = _Cache()


def newest_table(table: LakePath) -> FollowedTable:
    """Return the newest version of a table.

    Raises:
        TableNotFoundError: there is no table at the path.
        TornLogError: its log cannot be read.
    """
    newest = _follow(table, _cache.tables[table]) if table in _cache.tables else None
    if newest is None:
        newest = _open(table)
        while len(_cache.tables) >= _MAX_TABLES:
            del _cache.tables[next(iter(_cache.tables))]
    _cache.tables[table] = newest
    return newest


def table_at(table: LakePath, version: int) -> FollowedTable:
    """Return a version of a table.

    Raises:
        TableNotFoundError: there is no table at the path.
        DeltaError: Delta cannot read the version any more.
    """
    mark = commit_mark(table, version)
    if not mark:
        return FollowedTable(table, open_table(table, version), version, mark)
    key = (table, version, mark)
    if key not in _cache.files:
        newest = newest_table(table)
        is_newest = (newest.version, newest.mark) == (version, mark)
        _keep_files(table, newest if is_newest else FollowedTable(table, open_table(table, version), version, mark))
    return _cache.files[key]


def _open(table: LakePath) -> FollowedTable:
    delta = open_table(table)
    return FollowedTable(table, delta, delta.version(), commit_mark(table, delta.version()))


def _follow(table: LakePath, known: FollowedTable) -> FollowedTable | None:
    """Return the newest version, by the commits after a known version; None if the table has to be opened again."""
    versions = commit_versions(table, known.version - 1)
    is_same = known.mark and versions[:1] == [known.version] and commit_mark(table, known.version) == known.mark
    if not is_same or versions != list(range(known.version, versions[-1] + 1)):
        return None
    now: FollowedTable | None = known
    if len(versions) > 1:
        _keep_files(table, known)
    for version in versions[1:]:
        now = now and now.after(existing_actions(table, version), commit_mark(table, version))
    return now


def _keep_files(table: LakePath, version: FollowedTable) -> None:
    while len(_cache.files) >= _MAX_FILE_LISTS:
        del _cache.files[next(iter(_cache.files))]
    _cache.files[table, version.version, version.mark] = version


def _files_of(opened: DeltaTable) -> dict[str, LoggedFile]:
    """Return the data files of an open table, by their names in its log."""
    listed = logged_files(opened)
    nothing = [None] * listed.num_rows
    columns = ("size_bytes", "num_records", "null_count._rescued")
    values = (listed[name].to_pylist() if name in listed.column_names else nothing for name in columns)
    return dict(zip(listed["path"].to_pylist(), map(LoggedFile, *values), strict=True))


def _file_of(add: Action) -> LoggedFile:
    statistics = json_object(add.get("stats"))
    return LoggedFile(add["size"], statistics.get("numRecords"), (statistics.get("nullCount") or {}).get("_rescued"))

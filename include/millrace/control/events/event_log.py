"""The log of a table of events, read and written with few requests.

delta-rs reads the log of a table twice to open it, and again around each write: about twenty requests to a bucket, and
seventy for a compaction. The columns of these tables never change, so that an append conflicts with no other commit and
needs only two puts. A writer that replaces files, or appends under a key, reads the new commits before each further
attempt. delta-rs creates the table.

Each event carries the version of the commit that recorded it, and keeps it when files are compacted: that is the order
of the events. So an attempt at another version writes the data file again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import takewhile
from math import inf
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from millrace.clock import steady_now_s
from millrace.contracts.lake_path import LakePath
from millrace.control.events.event_files import EventFile, now_ms, recorded_in, write_events
from millrace.control.log.checkpoints import checkpoint_bytes, read_actions
from millrace.control.log.delta_log import CHECKPOINT, COMMIT, Action, parsed_actions, versions_in
from millrace.control.log.log_state import LogState
from millrace.control.storage.objects_on_s3 import object_store
from millrace.control.storage.read_cache import clear_read_cache, note_last_file
from millrace.control.storage.stored_files import (
    delete_files,
    files_in,
    is_file,
    names_in,
    read_bytes,
    replace_file,
)
from millrace.errors import TornLogError, first_line

_COMMITS_KEPT = 100
"""Each clean-up of the log keeps this many of the newest commits, however old they are."""

_FRESH_FOR_S = 60.0
"""The seconds after a read of the log in which an append first tries the version after the last one that was read."""

APPEND, REWRITE = "WRITE", "OPTIMIZE"
"""Delta's names of the operations."""


class EventLog:
    """The log of a table whose events are partitioned by `table`; it caches what it has read.

    Args:
        path: the folder of the table.
        indexed: the columns with statistics for each data file.
        create: creates the table, unless another process creates it at the same time.
    """

    def __init__(self, path: LakePath, indexed: Sequence[str], create: Callable[[], object]) -> None:
        self._path = path
        self._log = path / "_delta_log"
        self._indexed = indexed
        self._create = create
        self._objects = object_store(self._log)
        self._last, self._read_at = -1, -inf
        self._state = self._no_state()
        self._grouped_at = self._state, -1
        self._grouped = defaultdict[str, list[EventFile]](list)

    def append(self, events: pa.Table) -> int:
        """Append events in one commit, and return its version."""
        # A fresh last version has no clean-up after it: the next version is either free or taken.
        is_known = self._last >= 0 and not self._is_stale()
        version = self._last + 1 if is_known else self._last_version() + 1
        while version == 0 or not self._append_at(version, events):
            if version == 0:
                self._create()
            version = self._last_version() + 1
        return version

    def append_once(self, events: pa.Table, key: str) -> int | None:
        """Append events under `key`, Delta's application id; None if a commit already has this key."""
        self._read()
        if key in self._state.keys:
            return None
        txn = {"txn": {"appId": key, "version": 1, "lastUpdated": now_ms()}}
        return self._commit_while(
            lambda: key not in self._state.keys, lambda version: self._append_at(version, events, [txn])
        )

    def replace(self, replaced: Collection[EventFile], events: pa.Table) -> int | None:
        """Replace data files by events, in one commit.

        Returns:
            The version; None if another writer has replaced one of these files first, so that nothing was changed.
        """
        changes_data = sum(file.rows for file in replaced) != len(events)
        # The events keep their numbers, so that these files fit any version.
        files, at_ms = write_events(self._path, self._indexed, events), now_ms()
        names = {file.name for file in replaced}
        actions = [file.remove_action(at_ms, changes_data=changes_data) for file in replaced]
        actions += [file.add_action(changes_data=changes_data) for file in files]
        version = self._commit_while(
            lambda: names <= self._state.files.keys(), lambda version: self._put(version, REWRITE, actions)
        )
        if version is None:
            delete_files(self._path, [unquote(file.name) for file in files])
        return version

    def declare(self, columns: Sequence[Action]) -> None:
        """Add columns that the table lacks, because an earlier Millrace created it; if a writer is first, do nothing.

        Its data files stay as they are.
        """
        self._read()
        metadata = self._state.definition["metaData"]
        schema = json.loads(metadata["schemaString"])
        known = {field["name"] for field in schema["fields"]}
        if new := [column for column in columns if column["name"] not in known]:
            schema["fields"] += new
            action = {"metaData": {**metadata, "schemaString": json.dumps(schema)}}
            self._put(self._state.version + 1, "ADD COLUMNS", [action])

    def files(self) -> list[EventFile]:
        """Return the data files of the newest version; none if there is no table.

        Raises:
            TornLogError: a file of the log is missing or damaged.
        """
        self._read()
        return list(self._state.files.values())

    def files_about(self, table: str) -> list[EventFile]:
        """Return the data files of the newest version with the events about one table.

        Raises:
            TornLogError: a file of the log is missing or damaged.
        """
        self._read()
        if self._grouped_at != (self._state, self._state.version):
            self._grouped_at, self._grouped = (self._state, self._state.version), defaultdict(list)
            for file in self._state.files.values():
                self._grouped[file.table].append(file)
        return list(self._grouped.get(table, ()))

    def write_checkpoint(self) -> None:
        """Write a checkpoint of the version that was read last, from which other processes open the table."""
        actions = [
            *({kind: content} for kind, content in self._state.definition.items()),
            *({"txn": {"appId": key, "version": number}} for key, number in self._state.keys.items()),
            *(file.add_action(changes_data=False) for file in self._state.files.values()),
            *({"remove": {**action, "dataChange": False}} for _, action in self._state.removed.values()),
        ]
        self._objects.put_if_absent(f"{self._state.version:020d}{CHECKPOINT}", checkpoint_bytes(actions))
        hint = {"version": self._state.version, "size": len(actions)}
        replace_file(self._log / "_last_checkpoint", json.dumps(hint).encode())

    def clean_up(self, keep: timedelta) -> None:
        """Delete the data files that were replaced longer ago than `keep`, and commits before an old checkpoint.

        An age is the difference between the storage's own times of two files of the log. So no clock of a writer
        counts, and a file is old only after a commit that is newer by this age.
        """
        listed = [file for file in files_in(self._log) if file.name[:20].isdigit()]
        latest = max((file.modified for file in listed), default=0.0)
        old = list(takewhile(lambda file: file.modified <= latest - keep.total_seconds(), listed))
        old_version = max(versions_in((file.name for file in old), COMMIT), default=-1)
        replaced = [name for name, (version, _) in self._state.removed.items() if version <= old_version]
        delete_files(self._path, list(map(unquote, replaced)))
        for name in replaced:
            del self._state.removed[name]
        checkpoints = versions_in((file.name for file in listed), CHECKPOINT)
        floor = max((at for at in checkpoints if at <= self._state.version - _COMMITS_KEPT), default=0)
        delete_files(self._log, [file.name for file in old if int(file.name[:20]) < floor])

    def _commit_while(self, is_allowed: Callable[[], bool], commit: Callable[[int], bool]) -> int | None:
        """Commit the version after the one that was read, as long as its state allows it; return it."""
        while is_allowed():
            version = self._state.version + 1
            if version == 0:
                self._create()
            elif commit(version):
                return version
            self._read()
        return None

    def _append_at(self, version: int, events: pa.Table, actions: Sequence[Action] = ()) -> bool:
        """Commit events with the number of a version as this version, and return whether it was free."""
        files = write_events(self._path, self._indexed, recorded_in(events, version))
        if self._put(version, APPEND, [*actions, *(file.add_action(changes_data=True) for file in files)]):
            return True
        delete_files(self._path, [unquote(file.name) for file in files])
        return False

    def _put(self, version: int, operation: str, actions: Sequence[Action]) -> bool:
        """Commit a version, and return whether it was free."""
        details = {"operation": operation, "operationParameters": {}, "isBlindAppend": operation == APPEND}
        info = {"commitInfo": {"timestamp": now_ms(), "engineInfo": "Millrace", **details}}
        body = "".join(json.dumps(action) + "\n" for action in (info, *actions)).encode()
        name = f"{version:020d}{COMMIT}"
        etag = self._objects.put_if_absent(name, body)
        if not etag or (self._is_stale() and self._was_cleaned_up(version)):
            return False
        note_last_file(self._log, name, etag)
        self._note_last_version(version)
        if version == self._state.version + 1:
            self._state.apply(version, actions)
        return True

    def _no_state(self) -> LogState[EventFile]:
        return LogState(partial(EventFile.of, self._path))

    def _was_cleaned_up(self, version: int) -> bool:
        """Whether the version was committed before and cleaned up; if so, delete the new commit, which is useless.

        This happens to a process that was stopped for a long time after it had read the log.
        """
        clear_read_cache()
        if version - 1 in self._list(version - 1)[0]:
            return False
        delete_files(self._log, [f"{version:020d}{COMMIT}"])
        return True

    def _read(self) -> None:
        """Read the log from the version that was read last or, if commits are missing, from a checkpoint."""
        if self._is_newest(self._state.version):
            self._note_last_version(self._state.version)
            return
        commits, checkpoints = self._versions_after(self._state.version)
        newest = max(commits, default=-1)
        self._note_last_version(newest)
        if not commits.issuperset(range(self._state.version, max(newest, self._state.version) + 1)):
            self._state = self._no_state()
            if checkpoints:
                self._state.apply(max(checkpoints), self._checkpoint(max(checkpoints)))
        try:
            for version in range(self._state.version + 1, newest + 1):
                self._state.apply(version, self._commit(version))
        except TornLogError:
            # Otherwise the commits before a missing one would look like the whole log to the next read.
            self._state = self._no_state()
            raise

    def _is_newest(self, version: int) -> bool:
        """Whether a version on a disk has a commit and the next one has none; False for a bucket.

        This takes two looks at a file instead of a listing of thousands. A clean-up deletes older commits first: if it
        had deleted the next commit, the second look would find this one missing, too.
        """
        following, own = (self._log / f"{number:020d}{COMMIT}" for number in (version + 1, version))
        return version > 0 and isinstance(own, Path) and not is_file(following) and is_file(own)

    def _last_version(self) -> int:
        """Return the newest version, without reading its commit; -1 if there is no table."""
        commits, _ = self._versions_after(max(self._last, self._state.version))
        self._note_last_version(max(commits, default=-1))
        return self._last

    def _note_last_version(self, version: int) -> None:
        self._last, self._read_at = version, steady_now_s()

    def _is_stale(self) -> bool:
        """Whether the log may have been cleaned up since this process read it."""
        return steady_now_s() - self._read_at >= _FRESH_FOR_S

    def _versions_after(self, known: int) -> tuple[set[int], set[int]]:
        """Return the versions with a commit and the versions with a checkpoint, from a known version on.

        If the known version is missing, because the log was cleaned up or the table was replaced, return all versions.
        """
        versions = self._list(known) if known > 0 else (set[int](), set[int]())
        return versions if known in versions[0] else self._list(-1)

    def _list(self, least: int) -> tuple[set[int], set[int]]:
        """Return the versions from `least` on with a commit, and those with a checkpoint."""
        names = list(names_in(self._log, f"{least:020d}" if least > 0 else ""))
        return versions_in(names, COMMIT), versions_in(names, CHECKPOINT)

    def _commit(self, version: int) -> list[Action]:
        file = self._log / f"{version:020d}{COMMIT}"
        with _report_damage(file):
            return parsed_actions(read_bytes(file))

    def _checkpoint(self, version: int) -> list[Action]:
        file = self._log / f"{version:020d}{CHECKPOINT}"
        with _report_damage(file):
            return list(read_actions(read_bytes(file)))


@contextmanager
def _report_damage(file: LakePath) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, ValueError) as error:
        cause = f"{file} is missing or cannot be read: {first_line(error)}"
        raise TornLogError(cause, "Restore it from a backup.") from error

"""The log of a table of events, read and written with few requests.

delta-rs reads the log of a table twice to open it, and again around each write: some twenty requests to a bucket, and
seventy to put files together. These tables never change their columns, so that an append conflicts with nothing, and is
two puts. Whoever replaces files, or says what may be said once, reads the commits in between before each further try.
delta-rs makes the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import takewhile
from math import inf
from urllib.parse import unquote

import pyarrow as pa

from include.contracts.lake_path import LakePath
from include.control.events.checkpoints import actions_of, checkpoint_of
from include.control.events.event_files import now_ms, write_events
from include.control.events.log_state import Action, EventFile, LogState
from include.control.storage.json_lines import json_lines
from include.control.storage.looks import look_again, note_last
from include.control.storage.objects_on_s3 import object_store
from include.control.storage.steady_clock import steady_now_s
from include.control.storage.stored_files import (
    delete_files,
    files_in,
    names_in,
    read_bytes,
    read_text,
    replace_file,
)
from include.errors import TornLogError, first_line

_COMMIT, _CHECKPOINT = ".json", ".checkpoint.parquet"

_COMMITS_KEPT = 100
"""So many of the newest commits outlive every clean-up, whatever the clocks of those who wrote them say."""

_SURE_FOR_S = 60.0
"""For so long an append goes right after the version that was seen last; a look at the log comes if that is taken."""

APPEND, REWRITE = "WRITE", "OPTIMIZE"
"""What is done to the table, as Delta calls it."""


class EventLog:
    """The log of one table whose events are partitioned by `table`; what was read of it is kept.

    Args:
        path: the table's folder.
        ordered: the columns whose least and greatest value are written down for each data file.
        create: makes the table, unless somebody else does at the same time.
        under_lease: callers hold a lease for each commit, because the store has no conditional puts.
    """

    def __init__(
        self, path: LakePath, ordered: Sequence[str], create: Callable[[], object], *, under_lease: bool = False
    ) -> None:
        self._path = path
        self._under_lease = under_lease
        self._log = path / "_delta_log"
        self._ordered = ordered
        self._create = create
        self._objects = object_store(self._log)
        self._last, self._seen_at = -1, -inf
        self._state = LogState(path)

    def append(self, events: pa.Table) -> int:
        """Append events in one commit; gives the version that it made."""
        adds = [file.added(changes_data=True) for file in write_events(self._path, self._ordered, events)]
        version = self._last + 1 if self._is_sure_of_the_last() else self._last_version() + 1
        while version == 0 or not self._put(version, APPEND, adds):
            if version == 0:
                self._create()
            version = self._last_version() + 1
        return version

    def append_once(self, events: pa.Table, key: str) -> int | None:
        """Append events under `key`, Delta's application id; None where something was appended under it before."""
        self._read()
        if key in self._state.keys:
            return None
        files = write_events(self._path, self._ordered, events)
        once = {"txn": {"appId": key, "version": 1, "lastUpdated": now_ms()}}
        adds = [file.added(changes_data=True) for file in files]
        return self._commit_while(lambda: key not in self._state.keys, APPEND, [once, *adds], files)

    def replace(self, replaced: Collection[EventFile], events: pa.Table) -> int | None:
        """Put events in the place of data files, in one commit.

        Returns:
            The version; None where somebody else has replaced one of these files first: then nothing was changed.
        """
        files, at_ms = write_events(self._path, self._ordered, events), now_ms()
        changes_data = sum(file.rows for file in replaced) != len(events)
        removes = [file.removed(at_ms, changes_data=changes_data) for file in replaced]
        adds = [file.added(changes_data=changes_data) for file in files]
        names = {file.name for file in replaced}
        return self._commit_while(lambda: names <= self._state.files.keys(), REWRITE, [*removes, *adds], files)

    def files(self) -> list[EventFile]:
        """The data files of the newest version; none where there is no table.

        Raises:
            TornLogError: a file of the log is missing or damaged.
        """
        self._read()
        return list(self._state.files.values())

    def sum_up(self) -> None:
        """Write a checkpoint of the version that was read last: who opens the table begins there."""
        body = checkpoint_of(self._state.actions())
        self._objects.put_if_absent(f"{self._state.version:020d}{_CHECKPOINT}", body)
        hint = {"version": self._state.version, "size": sum(1 for _ in self._state.actions())}
        replace_file(self._log / "_last_checkpoint", json.dumps(hint).encode())

    def clean_up(self, keep: timedelta) -> None:
        """Delete the data files that were replaced longer ago than `keep`, and commits below an old checkpoint.

        Ages are differences between times that the storage itself has stamped on the files of the log: nobody's clock
        counts, and nothing is taken for old before a commit came that long after it.
        """
        listed = [file for file in files_in(self._log) if file.name[:20].isdigit()]
        latest = max((file.modified for file in listed), default=0.0)
        old = list(takewhile(lambda file: file.modified <= latest - keep.total_seconds(), listed))
        settled = max(_numbers((file.name for file in old), _COMMIT), default=-1)
        replaced = [name for name, (version, _) in self._state.removed.items() if version <= settled]
        delete_files(self._path, list(map(unquote, replaced)))
        for name in replaced:
            del self._state.removed[name]
        checkpoints = _numbers((file.name for file in listed), _CHECKPOINT)
        floor = max((at for at in checkpoints if at <= self._state.version - _COMMITS_KEPT), default=0)
        delete_files(self._log, [file.name for file in old if int(file.name[:20]) < floor])

    def _commit_while(
        self, may: Callable[[], bool], operation: str, actions: Sequence[Action], files: Sequence[EventFile]
    ) -> int | None:
        """Commit right above what was read, as long as that allows it; else the files that were written for it go."""
        while may():
            version = self._state.version + 1
            if version == 0:
                self._create()
            elif self._put(version, operation, actions):
                return version
            self._read()
        delete_files(self._path, [unquote(file.name) for file in files])
        return None

    def _put(self, version: int, operation: str, actions: Sequence[Action]) -> bool:
        """Make a version; False where somebody else has."""
        said = {"operation": operation, "operationParameters": {}, "isBlindAppend": operation == APPEND}
        info = {"commitInfo": {"timestamp": now_ms(), "engineInfo": "Millrace", **said}}
        body = "".join(json.dumps(action) + "\n" for action in (info, *actions)).encode()
        name = f"{version:020d}{_COMMIT}"
        etag = self._objects.put_if_absent(name, body)
        if not etag or (self._is_stale() and self._fell_below_the_log(version)):
            return False
        note_last(self._log, name, etag)
        self._saw(version)
        if version == self._state.version + 1:
            self._state.apply(version, actions)
        return True

    def _fell_below_the_log(self, version: int) -> bool:
        """Whether the version had been taken and cleaned up; then its new commit, which nobody would read, goes again.

        This happens to a process that was stopped for long after its last look at the log.
        """
        look_again()
        if version - 1 in self._listed(version - 1)[0]:
            return False
        delete_files(self._log, [f"{version:020d}{_COMMIT}"])
        return True

    def _read(self) -> None:
        """Follow the log to its end, from where it was read last or, where it does not go on from there, anew."""
        commits, checkpoints = self._versions(self._state.version)
        newest = max(commits, default=-1)
        self._saw(newest)
        if not commits.issuperset(range(self._state.version, max(newest, self._state.version) + 1)):
            self._state = LogState(self._path)
            if checkpoints:
                self._state.apply(max(checkpoints), self._checkpoint(max(checkpoints)))
        for version in range(self._state.version + 1, newest + 1):
            self._state.apply(version, self._commit(version))

    def _last_version(self) -> int:
        """The newest version, without a look at what it holds; -1 where there is no table."""
        commits, _ = self._versions(max(self._last, self._state.version))
        self._saw(max(commits, default=-1))
        return self._last

    def _saw(self, version: int) -> None:
        self._last, self._seen_at = version, steady_now_s()

    def _is_sure_of_the_last(self) -> bool:
        """Whether the version after the last one that was seen is either free or taken, and not cleaned up by now."""
        return self._last >= 0 and not self._is_stale() and not self._under_lease

    def _is_stale(self) -> bool:
        """Whether the log may have been cleaned up since this process looked at it."""
        return steady_now_s() - self._seen_at >= _SURE_FOR_S

    def _versions(self, known: int) -> tuple[set[int], set[int]]:
        """The versions with a commit and those with a checkpoint, from a known version on if it is still there.

        Else all: none is known yet, the log was cleaned up, or the table was replaced.
        """
        found = self._listed(known) if known > 0 else (set[int](), set[int]())
        return found if known in found[0] else self._listed(-1)

    def _listed(self, least: int) -> tuple[set[int], set[int]]:
        """The versions from `least` on that have a commit, and those that have a checkpoint."""
        names = list(names_in(self._log, f"{least:020d}" if least > 0 else ""))
        return _numbers(names, _COMMIT), _numbers(names, _CHECKPOINT)

    def _commit(self, version: int) -> list[Action]:
        file = self._log / f"{version:020d}{_COMMIT}"
        with _damage_told(file):
            if actions := [line.value for line in json_lines(read_text(file))]:
                return actions
            raise ValueError("it is empty")

    def _checkpoint(self, version: int) -> list[Action]:
        file = self._log / f"{version:020d}{_CHECKPOINT}"
        with _damage_told(file):
            return list(actions_of(read_bytes(file)))


@contextmanager
def _damage_told(file: LakePath) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, ValueError) as error:
        msg = f"{file} is missing or cannot be read: {first_line(error)}\nRestore it from a backup."
        raise TornLogError(msg) from error


def _numbers(names: Iterable[str], kind: str) -> set[int]:
    """The versions of the files of a log that are of one kind."""
    return {int(name[:20]) for name in names if name[:20].isdigit() and name[20:] == kind}

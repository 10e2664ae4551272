"""What the commits of a table of events come to: its data files, and what else a checkpoint must say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from include.contracts.lake_path import LakePath

Action = dict[str, Any]
"""One line of a commit."""

_TIMES = ("recorded_at", "interval_start")
_CUT = timedelta(milliseconds=1)
"""delta-rs states times without what is less than that."""


@dataclass(frozen=True)
class EventFile:
    """A data file.

    Attributes:
        name: what the log calls it.
        path: where it lies.
        table: the table that its events are about.
        size: bytes.
        written_ms: when it was written, in milliseconds since 1970.
        stats: what the log states of its columns, as JSON.
    """

    name: str
    path: LakePath
    table: str
    size: int
    written_ms: int
    stats: str

    @property
    def rows(self) -> int:
        """How many events it holds."""
        return int(self._stated["numRecords"])

    @property
    def least(self) -> dict[str, Any]:
        """Column -> its least value, as Delta states it, of the columns of which that is kept."""
        return dict(self._stated.get("minValues", {}))

    @property
    def greatest(self) -> dict[str, Any]:
        """Column -> its greatest value, likewise."""
        return dict(self._stated.get("maxValues", {}))

    def ends(self, columns: Iterable[str]) -> dict[str, tuple[Any, Any]]:
        """Column -> its least and its greatest value, of those columns of which that is stated."""
        least, greatest = self._stated.get("minValues", {}), self._stated.get("maxValues", {})
        known = [name for name in columns if name in least and name in greatest]
        return {name: (_meant(name, least[name]), _meant(name, greatest[name], _CUT)) for name in known}

    @cached_property
    def _stated(self) -> dict[str, Any]:
        return dict(json.loads(self.stats or "{}"))

    def added(self, *, changes_data: bool) -> Action:
        """The action that adds it to the table."""
        about = {"path": self.name, "partitionValues": {"table": self.table}, "size": self.size}
        return {"add": {**about, "modificationTime": self.written_ms, "dataChange": changes_data, "stats": self.stats}}

    def removed(self, at_ms: int, *, changes_data: bool) -> Action:
        """The action that takes it out of the table."""
        about = {"path": self.name, "partitionValues": {"table": self.table}, "size": self.size}
        said = {"deletionTimestamp": at_ms, "dataChange": changes_data, "extendedFileMetadata": True}
        return {"remove": {**about, **said}}


def _meant(column: str, stated: Any, cut: timedelta = timedelta(0)) -> Any:
    """The value that Delta's statistics state."""
    return datetime.fromisoformat(stated) + cut if column in _TIMES else stated


class LogState:
    """What the commits up to a version come to.

    Attributes:
        version: that version; -1 for none.
        files: name -> data file.
        removed: name -> the version that has removed a data file, or a later one, and the action that did.
        keys: Delta's application id -> its last number.

    Args:
        table: the folder of the table.
    """

    def __init__(self, table: LakePath) -> None:
        self._table = table
        self._about: Action = {}
        self.version = -1
        self.files: dict[str, EventFile] = {}
        self.removed: dict[str, tuple[int, Action]] = {}
        self.keys: dict[str, int] = {}

    def apply(self, version: int, actions: Iterable[Action]) -> None:
        """Go on to `version` by the actions of its commit, or of its checkpoint."""
        for action in actions:
            for kind, said in action.items():
                self._apply(version, kind, said)
        self.version = version

    def actions(self) -> Iterator[Action]:
        """The actions that say all of it."""
        yield from ({kind: said} for kind, said in self._about.items())
        yield from ({"txn": {"appId": key, "version": number}} for key, number in self.keys.items())
        yield from (file.added(changes_data=False) for file in self.files.values())
        yield from ({"remove": {**said, "dataChange": False}} for _, said in self.removed.values())

    def _apply(self, version: int, kind: str, said: Any) -> None:
        if kind == "add":
            self.removed.pop(said["path"], None)
            self.files[said["path"]] = self._file(said)
        elif kind == "remove":
            self.files.pop(said["path"], None)
            self.removed[said["path"]] = version, said
        elif kind == "txn":
            self.keys[said["appId"]] = said["version"]
        elif kind in ("protocol", "metaData"):
            self._about[kind] = said

    def _file(self, add: dict[str, Any]) -> EventFile:
        return EventFile(
            name=add["path"],
            path=self._table / unquote(add["path"]),
            table=add["partitionValues"]["table"],
            size=add["size"],
            written_ms=add["modificationTime"],
            stats=add.get("stats") or "{}",
        )

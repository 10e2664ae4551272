"""The state of a table of events after some commits: its data files, and the rest of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from millrace.contracts.lake_path import LakePath

Action = dict[str, Any]
"""One line of a commit."""

RECORDED_IN = "recorded_in"
"""The column with the version of the table of events in which an event was recorded, which orders the events.

No clock does: that of another machine may be wrong. An event from before there was this column counts as recorded in a
version far below 0, which follows from the time at which it was recorded.
"""

AT_EPOCH = -(2**62)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = ("recorded_at", "interval_start")
_PRECISION = timedelta(milliseconds=1)
"""The precision of times in delta-rs's statistics; it cuts off the rest."""


@dataclass(frozen=True)
class EventFile:
    """A data file.

    Attributes:
        name: its name in the log.
        path: its path.
        table: the table that its events are about.
        size: its size in bytes.
        written_ms: when it was written, in milliseconds since 1970.
        stats: its statistics in the log, as JSON.
    """

    name: str
    path: LakePath
    table: str
    size: int
    written_ms: int
    stats: str

    @property
    def rows(self) -> int:
        """The number of its events."""
        return int(self._statistics["numRecords"])

    def ends(self, columns: Collection[str]) -> dict[str, tuple[Any, Any]]:
        """Return the minimum and maximum of columns, without columns that have no statistics."""
        least, greatest = self._statistics.get("minValues", {}), self._statistics.get("maxValues", {})
        names = [name for name in columns if name in least and name in greatest]
        ends = {name: (_value(name, least[name]), _value(name, greatest[name], _PRECISION)) for name in names}
        is_of_before = RECORDED_IN in columns and self._statistics.get("nullCount", {}).get(RECORDED_IN, True)
        if is_of_before and (times := self.ends(["recorded_at"])):
            first, last = (AT_EPOCH + (at - _EPOCH) // timedelta(microseconds=1) for at in times["recorded_at"])
            ends[RECORDED_IN] = first, ends.get(RECORDED_IN, (first, last))[1]
        return ends

    @cached_property
    def _statistics(self) -> dict[str, Any]:
        return dict(json.loads(self.stats or "{}"))

    def add_action(self, *, changes_data: bool) -> Action:
        """Return the action that adds the file to the table."""
        details = {"modificationTime": self.written_ms, "dataChange": changes_data, "stats": self.stats}
        return {"add": {**self._identity, **details}}

    def remove_action(self, at_ms: int, *, changes_data: bool) -> Action:
        """Return the action that removes the file from the table."""
        details = {"deletionTimestamp": at_ms, "dataChange": changes_data, "extendedFileMetadata": True}
        return {"remove": {**self._identity, **details}}

    @property
    def _identity(self) -> Action:
        return {"path": self.name, "partitionValues": {"table": self.table}, "size": self.size}


def _value(column: str, text: Any, precision: timedelta = timedelta(0)) -> Any:
    return datetime.fromisoformat(text) + precision if column in _TIMES else text


class LogState:
    """The state of a table after the commits up to a version.

    Attributes:
        version: the version; -1 for none.
        files: name -> data file.
        removed: name of a removed data file -> the version that removed it, or a later one, and the action.
        keys: Delta's application id -> its last number.

    Args:
        table: the folder of the table.
    """

    def __init__(self, table: LakePath) -> None:
        self._table = table
        self._table_actions: Action = {}
        self.version = -1
        self.files: dict[str, EventFile] = {}
        self.removed: dict[str, tuple[int, Action]] = {}
        self.keys: dict[str, int] = {}

    def apply(self, version: int, actions: Iterable[Action]) -> None:
        """Apply the actions of the commit or the checkpoint of `version`."""
        for kind, content in (item for action in actions for item in action.items()):
            match kind:
                case "add":
                    self.removed.pop(content["path"], None)
                    self.files[content["path"]] = self._file(content)
                case "remove":
                    self.files.pop(content["path"], None)
                    self.removed[content["path"]] = version, content
                case "txn":
                    self.keys[content["appId"]] = content["version"]
                case "protocol" | "metaData":
                    self._table_actions[kind] = content
        self.version = version

    @property
    def metadata(self) -> Action:
        """The `metaData` of the table: its id, its schema, its configuration."""
        return dict(self._table_actions["metaData"])

    def actions(self) -> Iterator[Action]:
        """Yield the actions of a checkpoint of this state."""
        yield from ({kind: content} for kind, content in self._table_actions.items())
        yield from ({"txn": {"appId": key, "version": number}} for key, number in self.keys.items())
        yield from (file.add_action(changes_data=False) for file in self.files.values())
        yield from ({"remove": {**action, "dataChange": False}} for _, action in self.removed.values())

    def _file(self, add: dict[str, Any]) -> EventFile:
        return EventFile(
            name=add["path"],
            path=self._table / unquote(add["path"]),
            table=add["partitionValues"]["table"],
            size=add["size"],
            written_ms=add["modificationTime"],
            stats=add.get("stats") or "{}",
        )

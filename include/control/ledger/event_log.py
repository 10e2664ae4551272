"""The log of a table of `ops`, read and appended to with few requests.

delta-rs reads the log of a table twice to open it, and again around each append: some twenty requests to a bucket.
These tables never change their columns, so that an append conflicts with nothing, and is two puts beside a look for the
newest version. What else is done to them, checkpoints and putting files together, is left to delta-rs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from include.contracts.lake_path import LakePath
from include.control.storage.json_lines import json_lines
from include.control.storage.objects_on_s3 import object_store
from include.control.storage.stored_files import names_in, read_bytes, read_text
from include.errors import TornLogError

_COMMIT, _CHECKPOINT = ".json", ".checkpoint.parquet"


@dataclass(frozen=True)
class EventFile:
    """A data file.

    Attributes:
        path: where it lies.
        table: the table that its events are about.
        size: bytes.
        least: column -> its least value, as Delta states it, of the columns of which that is kept.
        greatest: column -> its greatest value.
    """

    path: LakePath
    table: str
    size: int
    least: dict[str, Any]
    greatest: dict[str, Any]


class EventLog:
    """The log of one table whose events are partitioned by `table`; what was read of it is kept.

    Args:
        path: the table's folder.
        ordered: the columns whose least and greatest value are written down for each data file.
        create: makes the table, unless somebody else does at the same time.
    """

    def __init__(self, path: LakePath, ordered: Sequence[str], create: Callable[[], object]) -> None:
        self._path = path
        self._log = path / "_delta_log"
        self._ordered = ordered
        self._create = create
        self._objects = object_store(self._log)
        self._last = self._read = -1
        self._files: dict[str, EventFile] = {}

    def append(self, events: pa.Table) -> int:
        """Append events in one commit; gives the version that it made."""
        adds = list(self._write(events))
        body = "".join(json.dumps(action) + "\n" for action in (_commit_info(), *adds)).encode()
        version = self._last_version() + 1
        if version == 0:
            self._create()
            version = self._last_version() + 1
        while not self._objects.put_if_absent(f"{version:020d}{_COMMIT}", body):
            version = self._last_version() + 1
        self._last = version
        if version == self._read + 1:
            self._apply(adds)
            self._read = version
        return version

    def files(self) -> list[EventFile]:
        """The data files of the newest version; none where there is no table.

        Raises:
            TornLogError: a file of the log is missing or damaged.
        """
        commits, checkpoints = self._versions(self._read)
        if self._read not in commits:
            self._read, self._files = max(checkpoints, default=-1), {}
            if checkpoints:
                self._apply(self._checkpoint(self._read))
        self._follow(commits)
        return list(self._files.values())

    def _last_version(self) -> int:
        """The newest version, without a look at what it holds; -1 where there is no table."""
        commits, _ = self._versions(max(self._last, self._read))
        self._last = max(commits, default=-1)
        return self._last

    def _versions(self, known: int) -> tuple[set[int], set[int]]:
        """The versions with a commit and those with a checkpoint, from a known version on if it is still there.

        Else all from the last checkpoint on: none is known yet, the log was cleaned up, or the table was replaced.
        """
        found = self._listed(known) if known >= 0 else (set[int](), set[int]())
        if known in found[0]:
            return found
        found = self._listed(self._last_checkpoint())
        return found if found[0] else self._listed(-1)

    def _follow(self, commits: Iterable[int]) -> None:
        for version in range(self._read + 1, max(commits, default=-1) + 1):
            file = self._log / f"{version:020d}{_COMMIT}"
            try:
                self._apply(line.value for line in json_lines(read_text(file)))
            except (FileNotFoundError, ValueError) as error:
                msg = f"{file} is missing or cannot be read: {error}\nRestore it from a backup."
                raise TornLogError(msg) from error
            self._read = version

    def _listed(self, least: int) -> tuple[set[int], set[int]]:
        """The versions from `least` on that have a commit, and those that have a checkpoint."""
        names = list(names_in(self._log, after=f"{least:020d}" if least > 0 else ""))
        numbered = [(int(name[:20]), name[20:]) for name in names if name[:20].isdigit()]
        commits, checkpoints = ({at for at, kind in numbered if kind == wanted} for wanted in (_COMMIT, _CHECKPOINT))
        return commits, checkpoints

    def _last_checkpoint(self) -> int:
        try:
            return int(json.loads(read_text(self._log / "_last_checkpoint"))["version"])
        except (FileNotFoundError, ValueError):
            return -1

    def _checkpoint(self, version: int) -> Iterator[dict[str, Any]]:
        content = pa.BufferReader(read_bytes(self._log / f"{version:020d}{_CHECKPOINT}"))
        adds = pq.read_table(content, columns=["add"])["add"].drop_null().to_pylist()
        return ({"add": {**add, "partitionValues": dict(add["partitionValues"])}} for add in adds)

    def _apply(self, actions: Iterable[dict[str, Any]]) -> None:
        for action in actions:
            if "remove" in action:
                self._files.pop(action["remove"]["path"], None)
            if add := action.get("add"):
                stated = json.loads(add.get("stats") or "{}")
                self._files[add["path"]] = EventFile(
                    path=self._path / unquote(add["path"]),
                    table=add["partitionValues"]["table"],
                    size=add["size"],
                    least=stated.get("minValues", {}),
                    greatest=stated.get("maxValues", {}),
                )

    def _write(self, events: pa.Table) -> Iterator[dict[str, Any]]:
        for table in pc.unique(events["table"]).to_pylist():
            of_table = events.filter(pc.equal(events["table"], table)).drop_columns(["table"])
            content = pa.BufferOutputStream()
            pq.write_table(of_table, content, compression="zstd")
            body, name = content.getvalue().to_pybytes(), f"{uuid4()}.parquet"
            object_store(self._path / f"table={table}").put_if_absent(name, body)
            yield {
                "add": {
                    "path": f"table={table}/{name}",
                    "partitionValues": {"table": table},
                    "size": len(body),
                    "modificationTime": _now_ms(),
                    "dataChange": True,
                    "stats": json.dumps(self._statistics(of_table)),
                }
            }

    def _statistics(self, events: pa.Table) -> dict[str, Any]:
        of_columns = {name: pc.min_max(events[name]).as_py() for name in self._ordered}
        known = {name: found for name, found in of_columns.items() if found["min"] is not None}
        return {
            "numRecords": len(events),
            "minValues": {name: _stated(found["min"]) for name, found in known.items()},
            "maxValues": {name: _stated(found["max"]) for name, found in known.items()},
            "nullCount": {name: events[name].null_count for name in self._ordered},
        }


def _commit_info() -> dict[str, Any]:
    said = {"operation": "WRITE", "operationParameters": {"mode": "Append"}, "isBlindAppend": True}
    return {"commitInfo": {"timestamp": _now_ms(), "engineInfo": "Millrace", **said}}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _stated(value: object) -> object:
    """A value as Delta's statistics state it."""
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else value

"""Delta checkpoints: the actions of a log up to a version, in one Parquet file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millrace.contracts.lake_path import LakePath
from millrace.control.log.delta_log import CHECKPOINT, COMMIT, Action, commit_actions, existing_actions, versions_in
from millrace.control.storage.stored_files import names_in, read_bytes

_REACH = 100
"""How many commits are read at most for a definition; a table has a checkpoint after each ten commits."""

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
"""The name of a checkpoint, or of one of so many parts of it."""

_TEXTS = pa.map_(pa.string(), pa.string())
_FEATURES = pa.list_(pa.string())
_FILE_COLUMNS = [("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64()), ("dataChange", pa.bool_())]

_KINDS: dict[str, pa.DataType] = {
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", _FEATURES),
            ("writerFeatures", _FEATURES),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("createdTime", pa.int64()),
            ("configuration", _TEXTS),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "add": pa.struct([*_FILE_COLUMNS, ("modificationTime", pa.int64()), ("stats", pa.string())]),
    "remove": pa.struct([*_FILE_COLUMNS, ("deletionTimestamp", pa.int64()), ("extendedFileMetadata", pa.bool_())]),
}
"""Kind of action in a table of events -> its columns."""


def checkpoint_bytes(actions: Iterable[Action]) -> bytes:
    """Return a checkpoint with these actions."""
    rows = pa.Table.from_pylist(list(actions), schema=pa.schema(list(_KINDS.items())))
    content = pa.BufferOutputStream()
    pq.write_table(rows, content, compression="snappy")
    return bytes(content.getvalue())


def definition_at(table: LakePath, version: int) -> Action | None:
    """Return the `metaData` of a table at a version; None if neither the last commits nor a checkpoint have it.

    Raises:
        TornLogError: a commit file is damaged.
    """
    log, oldest = table / "_delta_log", max(version - _REACH, 0)
    checkpoints = versions_in(names_in(log, f"{oldest:020d}"), CHECKPOINT)
    for at in range(version, oldest - 1, -1):
        with suppress(FileNotFoundError):
            for action in commit_actions(table, at):
                if "metaData" in action:
                    return dict(action["metaData"])
        if at in checkpoints:
            checkpoint = pq.ParquetFile(pa.BufferReader(read_bytes(log / f"{at:020d}{CHECKPOINT}")))
            column = checkpoint.read(columns=["metaData"], use_threads=False)["metaData"]
            (metadata,) = column.drop_null().to_pylist(maps_as_pydicts="strict")
            return dict(metadata)
    return None


def removed_files(table: LakePath, version: int) -> dict[str, int]:
    """Return the files that a version's log still names as removed: name in the log -> when, in ms since 1970.

    Delta leaves those out of a checkpoint that are past the retention of the table.

    Raises:
        TornLogError: a commit file since the last checkpoint is missing or damaged.
    """
    log, removed = table / "_delta_log", dict[str, int]()
    names = list(names_in(log))
    checkpoint, parts = _newest_checkpoint(names, version)
    for name in parts:
        stored = pq.ParquetFile(pa.BufferReader(read_bytes(log / name)))
        if "remove" in stored.schema_arrow.names:
            columns = ["remove.path", "remove.deletionTimestamp"]
            column = stored.read(columns=columns, use_threads=False)["remove"].drop_null()
            paths, times = pc.struct_field(column, "path"), pc.struct_field(column, "deletionTimestamp")
            removed |= dict(zip(paths.to_pylist(), pc.fill_null(times, 0).to_pylist(), strict=True))
    if not parts:  # a log without a checkpoint begins with version 0; of a kind of checkpoint not read here, later
        checkpoint = min(versions_in(names, COMMIT), default=0) - 1
    for at in range(checkpoint + 1, version + 1):
        for action in existing_actions(table, at):
            if "remove" in action:
                removed[action["remove"]["path"]] = action["remove"].get("deletionTimestamp") or 0
            elif "add" in action:
                removed.pop(action["add"]["path"], None)
    return removed


def whole_checkpoints(names: Iterable[str]) -> dict[int, list[str]]:
    """Return the versions of the whole checkpoints among the files of a log, with their files.

    Other systems write parts; those of another kind than the classic one are left out.
    """
    files: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if found := _CHECKPOINT.fullmatch(name):
            files.setdefault((int(found[1]), int(found[2] or 1)), []).append(name)
    return {at: of_it for (at, parts), of_it in files.items() if len(of_it) == parts}


def _newest_checkpoint(names: Iterable[str], version: int) -> tuple[int, list[str]]:
    """Return the version of the newest whole checkpoint up to `version`, and its files."""
    return max(((at, of_it) for at, of_it in whole_checkpoints(names).items() if at <= version), default=(-1, []))


def read_actions(checkpoint: bytes) -> Iterator[Action]:
    """Yield the actions of a checkpoint that Millrace or delta-rs wrote, without null values, as in a commit.

    Raises:
        pa.ArrowInvalid: the checkpoint cannot be read.
    """
    file = pq.ParquetFile(pa.BufferReader(checkpoint))
    for kind in [name for name in file.schema_arrow.names if name in _KINDS]:
        column = file.read(columns=[kind], use_threads=False)[kind]
        for action in column.drop_null().to_pylist(maps_as_pydicts="strict"):
            yield {kind: {name: value for name, value in action.items() if value is not None}}

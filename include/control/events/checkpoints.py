"""Checkpoints of a table of events, as Delta knows them: all that its log says up to a version, as one Parquet file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from include.control.events.log_state import Action

_TEXTS = pa.map_(pa.string(), pa.string())
_FEATURES = pa.list_(pa.string())
_ABOUT_A_FILE = [("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64()), ("dataChange", pa.bool_())]

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
    "add": pa.struct([*_ABOUT_A_FILE, ("modificationTime", pa.int64()), ("stats", pa.string())]),
    "remove": pa.struct([*_ABOUT_A_FILE, ("deletionTimestamp", pa.int64()), ("extendedFileMetadata", pa.bool_())]),
}
"""The kinds of actions that a table of events has -> their columns."""


def checkpoint_of(actions: Iterable[Action]) -> bytes:
    """A checkpoint that says these actions."""
    rows = pa.Table.from_pylist(list(actions), schema=pa.schema(list(_KINDS.items())))
    content = pa.BufferOutputStream()
    pq.write_table(rows, content, compression="snappy")
    return bytes(content.getvalue())


def actions_of(checkpoint: bytes) -> Iterator[Action]:
    """The actions that a checkpoint says, be it ours or delta-rs's.

    Raises:
        pa.ArrowInvalid: it cannot be read.
    """
    file = pq.ParquetFile(pa.BufferReader(checkpoint))
    for kind in [name for name in file.schema_arrow.names if name in _KINDS]:
        said = file.read(columns=[kind])[kind]
        yield from ({kind: _plain(one)} for one in said.drop_null().to_pylist(maps_as_pydicts="strict"))


def _plain(said: dict[str, Any]) -> dict[str, Any]:
    """An action as a commit says it: nothing of what is not stated."""
    return {name: value for name, value in said.items() if value is not None}

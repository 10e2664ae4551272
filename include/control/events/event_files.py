"""The data files of a table of events: written one a table that they are about, and read piece by piece."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from errno import ENOENT
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from include.contracts.lake_path import LakePath
from include.contracts.time_format import ISO_MICROSECOND
from include.control.events.conditions import Condition, may_meet
from include.control.events.log_state import EventFile
from include.control.storage.arrow_files import open_for_arrow, remember
from include.control.storage.objects_on_s3 import object_store
from include.errors import TornLogError, first_line

_AT_A_TIME = 5_000
_BUFFER = 64 * 1024
"""Bytes of a column that are read ahead: else each column of a compacted file is held whole."""

_EVENTS_A_GROUP = 4096
"""So many lie together in a data file, and can be left unread."""


def write_events(folder: LakePath, ordered: Sequence[str], events: pa.Table) -> list[EventFile]:
    """Write events as data files, one for each table that they are about; no commit names them yet.

    Args:
        folder: of the table of events.
        ordered: the columns whose least and greatest value are stated.
        events: the events.
    """
    return [_written(folder, ordered, events, table) for table in pc.unique(events["table"]).to_pylist()]


def _written(folder: LakePath, ordered: Sequence[str], events: pa.Table, table: str) -> EventFile:
    of_table = events.filter(pc.equal(events["table"], table)).drop_columns(["table"])
    content, part, name = pa.BufferOutputStream(), f"table={table}", f"{uuid4()}.parquet"
    pq.write_table(of_table, content, compression="zstd", row_group_size=_EVENTS_A_GROUP)
    body = content.getvalue().to_pybytes()
    object_store(folder / part).put_if_absent(name, body)
    remember(folder / part / name, body)
    stats = json.dumps(_statistics(of_table, ordered))
    return EventFile(f"{part}/{name}", folder / part / name, table, len(body), now_ms(), stats)


def now_ms() -> int:
    """The time as Delta states it."""
    return time.time_ns() // 1_000_000


def _statistics(events: pa.Table, ordered: Sequence[str]) -> dict[str, Any]:
    of_columns = {name: pc.min_max(events[name]).as_py() for name in ordered}
    known = {name: found for name, found in of_columns.items() if found["min"] is not None}
    return {
        "numRecords": len(events),
        "minValues": {name: _stated(found["min"]) for name, found in known.items()},
        "maxValues": {name: _stated(found["max"]) for name, found in known.items()},
        "nullCount": {name: events[name].null_count for name in ordered},
    }


def _stated(value: object) -> object:
    """A value as Delta's statistics state it."""
    return f"{value.astimezone(UTC):{ISO_MICROSECOND}}" if isinstance(value, datetime) else value


def read_events(
    file: LakePath, wanted: pa.Schema, table: str, conditions: Mapping[str, Condition] = {}
) -> Iterator[pa.RecordBatch]:
    """The events of one data file, piece by piece, without the row groups in which none meets the conditions.

    Args:
        file: the file.
        wanted: the columns to read.
        table: the table that the events are about, which the file's folder says and the file does not.
        conditions: column -> what it must hold.

    Raises:
        TornLogError: the file is gone, or none that can be read.
    """
    with (
        _damage_told(file),
        _memory_given_back(),
        open_for_arrow(file) as content,
        pq.ParquetFile(content, buffer_size=_BUFFER, pre_buffer=False) as data,
    ):
        columns = [name for name in wanted.names if name != "table"]
        ends = (_ends(data.metadata.row_group(at), conditions) for at in range(data.num_row_groups))
        groups = [at for at, of_group in enumerate(ends) if may_meet(conditions, of_group)]
        for piece in data.iter_batches(_AT_A_TIME, row_groups=groups, columns=columns, use_threads=False):
            yield pa.record_batch([_column(piece, field, table) for field in wanted], schema=wanted)


@contextmanager
def _damage_told(file: LakePath) -> Iterator[None]:
    """Tell damage from trouble: of a disk it has a number, and of a store its own client tells it."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        is_trouble = isinstance(error, OSError) and error.errno not in (None, ENOENT)
        if is_trouble or not isinstance(file, Path):
            raise
        msg = f"{file}, a file of the ledger, cannot be read: {first_line(error)}\nRestore it from a backup."
        raise TornLogError(msg) from error


@contextmanager
def _memory_given_back() -> Iterator[None]:
    """Arrow's own allocator, and it serves only part of the reading whatever it is told, keeps what it was given back.

    A ledger of 100,000 files took 70 MB for the 5 MB that are in use at a time.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        before.release_unused()


def _ends(group: pq.RowGroupMetaData, names: Collection[str]) -> dict[str, tuple[Any, Any]]:
    """Column -> its least and its greatest value in a row group, of those columns of which that is stated."""
    columns = [group.column(at) for at in range(group.num_columns)]
    stated = {column.path_in_schema: column.statistics for column in columns if column.path_in_schema in names}
    return {name: (known.min, known.max) for name, known in stated.items() if known and known.has_min_max}


def _column(piece: pa.RecordBatch, field: pa.Field, table: str) -> pa.Array:
    if field.name == "table":
        return pa.repeat(pa.scalar(table), len(piece))
    return piece.column(field.name).cast(field.type)

"""The data files of a table of events: each is about one table, and is read in batches."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from errno import ENOENT
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millrace.contracts.lake_path import LakePath
from millrace.contracts.time_format import ISO_MICROSECOND
from millrace.control.events.conditions import Condition, may_meet
from millrace.control.log.delta_log import Action
from millrace.control.storage.arrow_files import open_for_arrow
from millrace.control.storage.objects_on_s3 import object_store
from millrace.errors import TornLogError, first_line

_BATCH_SIZE = 5_000
_BUFFER = 64 * 1024
"""The bytes of a column that are read ahead; without a limit, whole columns of a compacted file would be in memory."""

_ROW_GROUP_SIZE = 4096
"""The number of events in a row group; a reader can skip row groups."""

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

    @classmethod
    def of(cls, table: LakePath, add: Action) -> EventFile:
        """Return the data file that an action adds to the table of events in a folder."""
        return cls(
            name=add["path"],
            path=table / unquote(add["path"]),
            table=add["partitionValues"]["table"],
            size=add["size"],
            written_ms=add["modificationTime"],
            stats=add.get("stats") or "{}",
        )

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


def write_events(folder: LakePath, indexed: Sequence[str], events: pa.Table) -> list[EventFile]:
    """Write events as data files, one for each table that they are about, without a commit.

    `folder` is that of the table of events; the columns `indexed` have statistics in the log.
    """
    files = []
    for table in pc.unique(events["table"]).to_pylist():
        of_table = events.filter(pc.equal(events["table"], table)).drop_columns(["table"])
        content, part, name = pa.BufferOutputStream(), f"table={table}", f"{uuid4()}.parquet"
        pq.write_table(of_table, content, compression="zstd", row_group_size=_ROW_GROUP_SIZE)
        body = content.getvalue().to_pybytes()
        object_store(folder / part).put_if_absent(name, body)
        stats = json.dumps(_statistics(of_table, indexed))
        files.append(EventFile(f"{part}/{name}", folder / part / name, table, len(body), now_ms(), stats))
    return files


def recorded_in(events: pa.Table, version: int) -> pa.Table:
    """Return events with the version of the table in which they are recorded."""
    return events.append_column(RECORDED_IN, pa.repeat(pa.scalar(version, pa.int64()), len(events)))


def now_ms() -> int:
    """Return the time in milliseconds since 1970, as Delta writes it."""
    return time.time_ns() // 1_000_000


def _statistics(events: pa.Table, indexed: Sequence[str]) -> dict[str, Any]:
    ends = {name: pc.min_max(events[name]).as_py() for name in indexed}
    not_null = {name: of_column for name, of_column in ends.items() if of_column["min"] is not None}
    return {
        "numRecords": len(events),
        "minValues": {name: _statistics_value(of_column["min"]) for name, of_column in not_null.items()},
        "maxValues": {name: _statistics_value(of_column["max"]) for name, of_column in not_null.items()},
        "nullCount": {name: events[name].null_count for name in indexed},
    }


def _statistics_value(value: object) -> object:
    return f"{value.astimezone(UTC):{ISO_MICROSECOND}}" if isinstance(value, datetime) else value


def read_events(
    file: LakePath, schema: pa.Schema, table: str, conditions: Mapping[str, Condition] = {}
) -> Iterator[pa.RecordBatch]:
    """Yield the events of a data file in batches, without row groups in which no event meets the conditions.

    `table`, which the events are about, is part of the folder's name, and no column of the file.

    Raises:
        TornLogError: the file is missing or damaged.
    """
    with (
        _report_damage(file),
        _system_memory_pool(),
        open_for_arrow(file) as content,
        pq.ParquetFile(content, buffer_size=_BUFFER, pre_buffer=False) as data,
    ):
        columns = {*schema.names, *(["recorded_at"] if RECORDED_IN in schema.names else [])} - {"table"}
        groups = list(range(data.num_row_groups))
        if groups[1:]:  # the log has chosen a file with one group by the same ends
            groups = [at for at in groups if may_meet(conditions, _ends(data.metadata.row_group(at), conditions))]
        for batch in data.iter_batches(_BATCH_SIZE, row_groups=groups, columns=list(columns), use_threads=False):
            yield pa.record_batch([_column(batch, field, table) for field in schema], schema=schema)


@contextmanager
def _report_damage(file: LakePath) -> Iterator[None]:
    """Report a missing or damaged file as a torn log, but no error of a disk (with a number) or of a store."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        is_disk_error = isinstance(error, OSError) and error.errno not in (None, ENOENT)
        if is_disk_error or not isinstance(file, Path):
            raise
        cause = f"{file}, a file of the ledger, cannot be read: {first_line(error)}"
        raise TornLogError(cause, "Restore it from a backup.") from error


@contextmanager
def _system_memory_pool() -> Iterator[None]:
    """Use the memory pool of the system, since Arrow's own pool does not return memory.

    With Arrow's pool, a ledger of 100,000 files took 70 MB instead of 5 MB. Parts of the reading use Arrow's pool in
    any case.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        before.release_unused()


def _ends(group: pq.RowGroupMetaData, names: Collection[str]) -> dict[str, tuple[Any, Any]]:
    """Return the minimum and maximum of columns in a row group, without columns for which they are missing."""
    columns = [group.column(at) for at in range(group.num_columns)]
    statistics = {column.path_in_schema: column.statistics for column in columns if column.path_in_schema in names}
    known = {name: values for name, values in statistics.items() if values and values.has_min_max}
    return {
        name: (values.min, values.max)
        for name, values in known.items()
        if name != RECORDED_IN or not values.null_count  # an event without it has a number of its own
    }


def _column(batch: pa.RecordBatch, field: pa.Field, table: str) -> pa.Array:
    if field.name == "table":
        return pa.repeat(pa.scalar(table), len(batch))
    is_stored = field.name in batch.schema.names  # a later Millrace may have added the column
    column = batch.column(field.name).cast(field.type) if is_stored else pa.nulls(len(batch), field.type)
    if field.name != RECORDED_IN or not column.null_count:
        return column
    return pc.coalesce(column, pc.add(batch.column("recorded_at").cast(pa.int64()), AT_EPOCH))

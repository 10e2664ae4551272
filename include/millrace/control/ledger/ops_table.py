"""An append-only table of the ledger.

A query of its events reads a data file only once, since data files never change.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import itemgetter
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError
from tenacity import retry, retry_if_exception, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from millrace.clock import Clock, utc_now
from millrace.contracts.lake_path import LakePath
from millrace.control.events.conditions import Among, Condition, Span, may_meet
from millrace.control.events.event_files import RECORDED_IN, EventFile, read_events
from millrace.control.events.event_log import EventLog
from millrace.control.log.stored_tables import options_of
from millrace.control.storage.read_cache import clear_read_cache
from millrace.errors import first_line
from millrace.paths import LakehousePaths

log = logging.getLogger(__name__)

FILES_WORTH_COMPACTING = 32
"""Each append writes a file; with this number of files about a table, an append also compacts them."""

_FILE_BYTES = 8 * 1024**2
"""A file of this size is not compacted again."""

_KEEP_REPLACED = timedelta(hours=1)
"""The time that a compacted file is kept for processes that are about to read it."""

_CHECKPOINT_INTERVAL = 10
"""The number of commits between two checkpoints; a process that opens a table reads all commits since the last one."""

_CONFIGURATION = {
    "delta.checkpointInterval": str(_CHECKPOINT_INTERVAL),
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}

_STATISTICS_COLUMNS = (
    RECORDED_IN,
    "recorded_at",
    "event",
    "table_id",
    "batch_seq",
    "version",
    "path",
    "interval_start",
)
"""The columns with statistics in the log: minimum and maximum in each data file. Long texts would fill the log."""

_PARTS = 16
"""The number of parts in which a search for the newest events reads a data file."""

_retry_after_conflict = retry(
    retry=retry_if_exception_type(CommitFailedError),
    stop=stop_after_attempt(8),
    wait=wait_random_exponential(multiplier=0.05, max=1),
    reraise=True,
)

_retry_if_rewritten = retry(
    retry=retry_if_exception(lambda error: FileNotFoundError in map(type, (error, error.__cause__))),
    stop=stop_after_attempt(3),
    reraise=True,
)
"""Reads the list of files again: `rewrite` deletes those that it replaces at once."""

_CLEAN_UP_INTERVAL = 100
"""The number of commits after which the log is cleaned up even if nothing was compacted."""


@dataclass(frozen=True)
class OpsSize:
    """The size of a table of the ledger.

    Attributes:
        size: the bytes of its data files.
        files: the number of its data files.
    """

    size: int
    files: int


class OpsTable:
    """Events of one kind, partitioned by the table that they are about.

    They are in the order in which they were committed, whatever the clocks of their writers said (ADR 58).

    Data files never change. The results of queries are therefore cached for each data file, so that a repeated query
    reads only new files. The events themselves are not cached, since there may be millions. After some appends, the
    table compacts its files and deletes the files that were replaced earlier.

    Args:
        path: its folder.
        schema: its columns.
        keep: how long events are kept; None keeps them for ever.
        clock: returns the time at which events are recorded.
    """

    def __init__(
        self,
        path: LakePath,
        schema: pa.Schema,
        keep: timedelta | None = None,
        *,
        clock: Clock = utc_now,
    ) -> None:
        self._path = path
        self._keep = keep
        self._clock = clock
        self._recorded = schema
        self._schema = schema.append(pa.field(RECORDED_IN, pa.int64()))
        self._indexed = [name for name in _STATISTICS_COLUMNS if name in self._schema.names]
        self._log = EventLog(path, self._indexed, self._create)
        self._results: dict[tuple[str, EventQuery], dict[LakePath, pa.Table]] = {}

    @classmethod
    def of(cls, paths: LakehousePaths, name: str, schema: pa.Schema, keep: timedelta | None = None) -> Self:
        """Return the table `ops.<name>` of a lakehouse."""
        return cls(paths.ops(name), schema, keep)

    def append(self, events: Sequence[dict[str, Any]]) -> None:
        """Append `events` in one commit; without events, do nothing."""
        if events:
            version = self._log.append(self._rows(events))
            self._maintain(version)

    def append_once(self, events: Sequence[dict[str, Any]], key: str) -> bool:
        """Append `events` in one commit, unless there is a commit with this key; return whether they were appended.

        If several writers append at the same time, one wins: the commit carries `key` as Delta's application id.
        Without events, do nothing.
        """
        if not events:
            return False
        version = self._log.append_once(self._rows(events), key)
        if version is not None:
            self._maintain(version)
        return version is not None

    def _rows(self, events: Sequence[dict[str, Any]]) -> pa.Table:
        """Return the events as rows; an event without the time at which it was recorded is recorded now."""
        return pa.Table.from_pylist([{"recorded_at": self._clock(), **event} for event in events], self._recorded)

    def compact(self, table: str) -> bool:
        """Compact the small files about `table` if there are many, and return whether there were.

        Events older than the retention are removed. If another process compacts the files first, nothing happens.
        """
        files, limit = self._log.files_about(table), self._clock() - self._keep if self._keep else None
        small = [file for file in files if file.size < _FILE_BYTES]
        if len(small) < FILES_WORTH_COMPACTING:
            return False
        large = [file for file in files if file not in small]
        outdated = [file for file in large if limit and file.ends(["recorded_at"])["recorded_at"][1] < limit]
        batches = [batch for file in small for batch in read_events(file.path, self._schema, table)]
        events = pa.Table.from_batches(batches, self._schema)
        current = events.filter(pc.greater_equal(events["recorded_at"], limit)) if limit else events
        self._log.replace([*small, *outdated], current.sort_by(RECORDED_IN))
        return True

    def rewrite(self, change: Callable[[str, pa.Table], pa.Table]) -> None:
        """Replace all events by what `change` makes of those about a table, and delete the files that had them before.

        It changes texts only: their number, their order, and by what they are found stay. A reader that is about to
        read one of these files reads the list of files again.
        """
        is_changed = True
        while is_changed:  # until no other process has compacted files with earlier texts in between
            is_changed = False
            for file in self._log.files():
                before = pa.Table.from_batches(list(read_events(file.path, self._schema, file.table)), self._schema)
                if not (after := change(file.table, before)).equals(before):
                    self._log.replace([file], after)
                    is_changed = True
        self._log.clean_up(timedelta(0))

    def _maintain(self, version: int) -> None:
        """After some commits, compact files, delete those replaced long enough ago, and write a checkpoint."""
        if version % _CHECKPOINT_INTERVAL:
            return
        try:
            self._log.declare(json.loads(Schema.from_arrow(self._schema).to_json())["fields"])
            counts = Counter(file.table for file in self._log.files())
            tables = [table for table, count in counts.items() if count >= FILES_WORTH_COMPACTING]
            is_changed = any([self.compact(table) for table in tables])
            if is_changed or version % _CLEAN_UP_INTERVAL == 0:
                self._log.clean_up(_KEEP_REPLACED)
            self._log.write_checkpoint()
        except Exception as error:  # noqa: BLE001  the events are written, so the writer continues
            log.warning("%s: a later append cleans it up: %s", self._path, first_line(error))

    @_retry_after_conflict
    def _create(self) -> None:
        """Create the table, unless another process creates it at the same time."""
        DeltaTable.create(
            str(self._path),
            self._schema,
            mode="ignore",
            partition_by=["table"],
            configuration={**_CONFIGURATION, "delta.dataSkippingStatsColumns": ",".join(self._indexed)},
            storage_options=options_of(self._path),
        )
        clear_read_cache()

    def events(self, table: str, columns: Sequence[str] = (), **equals: str) -> list[dict[str, Any]]:
        """Return the events about `table` whose columns equal `equals`, oldest first; the result is cached.

        Without `columns`, the result has all columns.
        """
        query = self._query(columns, {column: [value] for column, value in equals.items()})
        return self._oldest_first(self.results(table, query), columns)

    @_retry_if_rewritten
    def find(self, table: str, columns: Sequence[str] = (), **where: Collection[Any] | Span) -> list[dict[str, Any]]:
        """Return the events about `table` that meet conditions, oldest first; the result is not cached.

        Without `columns`, the result has all columns. `where` says of which values a column must have one, or in which
        span it must lie. Data files and row groups without such events are not read.
        """
        query = self._query(columns, where)
        files = _with_conditions(self._log.files_about(table), dict(query.conditions))
        return self._oldest_first([self._evaluate(file, query) for file in files], columns)

    def descending(
        self, table: str, column: str, columns: Sequence[str], upto: Any = None, **where: Collection[Any] | Span
    ) -> Iterator[dict[str, Any]]:
        """Yield the events about `table` in descending order of a column of numbers or times, up to a value.

        Among equal values, the last recorded event comes first. The events are read in parts, so that a caller that
        stops early reads little history. `where` is as in `find`.
        """
        ranges = [ends for file in self._log.files_about(table) for ends in file.ends([column]).values()]
        stops = {first + (last - first) * part // _PARTS for first, last in ranges for part in range(_PARTS)}
        lower_ends = sorted((stop for stop in stops if upto is None or stop < upto), reverse=True)
        at, step = 0, 1
        while True:
            # The last part has no lower end, since the log may lack the minimum of a data file.
            least = lower_ends[at] if at < len(lower_ends) else None
            rows = self.find(table, (*columns, column), **where, **{column: Span(least, upto)})
            new = [row for row in reversed(rows) if at == 0 or row[column] != upto]
            yield from sorted(new, key=itemgetter(column), reverse=True)
            if least is None:
                return
            upto, at, step = least, at + step, 2 * step

    @_retry_if_rewritten
    def results(self, table: str, query: EventQuery, **where: Collection[Any] | Span) -> list[pa.Table]:
        """Return the result of a query for each data file about `table`; a query reads a file only once.

        The further conditions `where`, as in `find`, only leave out data files.
        """
        files = self._log.files_about(table)
        existing = {file.path for file in files}
        cached = {path: rows for path, rows in self._results.get((table, query), {}).items() if path in existing}
        needed = _with_conditions(files, {**dict(query.conditions), **_conditions(where)})
        new = {file.path: self._evaluate(file, query) for file in needed if file.path not in cached}
        self._results[table, query] = cached | new
        return [self._results[table, query][file.path] for file in needed]

    def tables(self) -> set[str]:
        """Return the tables that have events."""
        return {file.table for file in self._log.files()}

    def size(self) -> OpsSize:
        """Return the size of the table."""
        files = self._log.files()
        return OpsSize(sum(file.size for file in files), len(files))

    def _evaluate(self, file: EventFile, query: EventQuery) -> pa.Table:
        conditions = dict(query.conditions)
        needed = {*query.schema.names, *conditions}
        schema = pa.schema([field for field in self._schema if field.name in needed])
        return query.evaluate(read_events(file.path, schema, file.table, conditions))

    def _query(self, columns: Sequence[str], where: Mapping[str, Collection[Any] | Span]) -> EventQuery:
        fields = [field for field in self._schema if not columns or field.name in (*columns, RECORDED_IN)]
        return EventQuery(pa.schema(fields), tuple(_conditions(where).items()))

    def _oldest_first(self, results: Sequence[pa.Table], columns: Sequence[str]) -> list[dict[str, Any]]:
        if not results:
            return []
        rows: list[dict[str, Any]] = (
            pa.concat_tables(results).sort_by(RECORDED_IN).select(columns or self._recorded.names).to_pylist()
        )
        return rows


def _with_conditions(files: Iterable[EventFile], conditions: Mapping[str, Condition]) -> list[EventFile]:
    """Return the data files in which an event may meet the conditions."""
    return [file for file in files if may_meet(conditions, file.ends(conditions))]


def _conditions(where: Mapping[str, Collection[Any] | Span]) -> dict[str, Condition]:
    return {name: each if isinstance(each, Span) else Among(frozenset(each)) for name, each in where.items()}


@dataclass(frozen=True)
class EventQuery:
    """The query for the events that meet conditions, each a column with its condition; the result has `schema`."""

    schema: pa.Schema
    conditions: tuple[tuple[str, Condition], ...] = ()

    def evaluate(self, events: Iterator[pa.RecordBatch]) -> pa.Table:
        """Return the events of one data file that meet the conditions."""
        rows = []
        for batch in events:
            for column, condition in self.conditions:
                batch = batch.filter(condition.matches(batch[column]))
            rows.append(batch.select(self.schema.names))
        return pa.Table.from_batches(rows).cast(self.schema).combine_chunks() if rows else self.schema.empty_table()

"""A batch: its stream, its sources, its intent, and its position in the log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from millrace.contracts.interval import Instant, Interval
from millrace.control.log.delta_log import USER_METADATA_KEY, Commit

ONE_STREAM = "main"
"""The name of the stream of a table that takes one batch at a time."""


@dataclass(frozen=True)
class Stream:
    """An independently ordered sequence of batches into one table.

    >>> Stream("silver.flights").app_id
    'millrace/silver.flights/main'
    """

    table: str
    name: str = ONE_STREAM

    @property
    def app_id(self) -> str:
        """Delta's application id of the stream; its txnVersion is the batch_seq."""
        return f"millrace/{self.table}/{self.name}"


@dataclass(frozen=True, slots=True)
class FileFact:
    """The identity of a source file: path, size and checksum, never its time alone.

    Attributes:
        path: the path relative to the landing root.
        size: the size in bytes.
        mtime_ns: the modification time; if it is unchanged, a known file need not be read again.
        checksum: the SHA-256 of the content, or `etag:` and the entity tag of an object in a bucket.
        defect: why the file cannot be loaded; empty for a sound file.
        columns: the file's own columns in order, if its format states them (CSV, Parquet, Avro).
        layout: the variant of the format: `JSON_ARRAY`, the line end of a CSV file other than a line feed,
            `MIXED_LINE_ENDS`, or a digest of the types of the columns, after `COPIED`.
    """

    path: str
    size: int
    mtime_ns: int
    checksum: str = ""
    defect: str = ""
    columns: tuple[str, ...] = ()
    layout: str = ""


JSON_ARRAY = "array"
"""The layout of a JSON file that is an array; a file of JSON lines has an empty layout."""

MIXED_LINE_ENDS = "mixed"
"""The layout of a CSV file with more than one kind of line end."""

COPIED = "copied "
"""The start of the layout of a Parquet file that Spark does not read: it reads a plain copy of it."""

OffsetRanges = dict[str, dict[int, tuple[int, int]]]
"""topic -> partition -> (first offset, last offset + 1)."""

UNDO = "undo of "
"""The prefix of `BatchSources.rebuild` in a batch that undoes a rebuild; the id of the rebuild follows."""


ERASURE = "erasure "
"""The prefix of `BatchSources.deletes` in a batch that erases subjects; the name of their request follows."""


class PinnedTable(BaseModel):
    """A table that a batch looks into, and does not consume: its Delta table id, and the version."""

    model_config = ConfigDict(frozen=True)

    table_id: str
    version: int


class SuppressedKeys(BaseModel):
    """The erased subjects whose records a batch leaves out.

    Attributes:
        upto: the number of the last event of `ops.suppressions` that counts.
        columns: column -> the kind of subject that its values identify.
    """

    model_config = ConfigDict(frozen=True)

    upto: int
    columns: dict[str, str]


class Repair(BaseModel):
    """A repair that a person has asked for.

    Attributes:
        id: the digest of what the dry run showed.
        said_by: the person.
        why: the reason, in the words of the person.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    said_by: str
    why: str


class BatchSources(BaseModel):
    """The pinned sources of a batch.

    Attributes:
        ranges: source table -> (version already consumed, version to consume up to); None consumes from the start.
        source_ids: source table -> its Delta table id: a table that was created again starts at version 0 again.
        rebuilt: the source tables that a rebuild has replaced since the last batch: all keys are computed again.
        references: table that the row rules of the table look into -> its certified version, as every attempt reads it.
        files: the number of source files (the list is in `ops.files`).
        files_digest: the digest of their paths and checksums.
        more_files: the interval has further files, which later batches load.
        replaces_files: the files replace the rows that were loaded before from files of the same paths.
        offsets: the Kafka messages that it reads; the next batch starts at their end.
        topic_ids: topic -> its Kafka id: a topic that was created again starts at offset 0 again.
        epochs: topic -> partition -> the epoch of its messages, which sorts before their offsets; missing for 0.
        unordered: topic -> number of messages of which nobody knows whether they came before or after a growth.
        snapshot_at: the start of the interval whose full snapshot is the newest in the target.
        snapshots: the intervals whose full snapshots are added to a table with history, oldest first; empty if the
            batch recomputes the history from all snapshots.
        waiting: the intervals whose full snapshots do not count yet; none of their rows is read.
        released: the intervals that were waiting before, and are read completely now.
        reprocess: the rows of the interval are read again, even if they were consumed before.
        suppressed: the erased subjects whose records it leaves out; None if there is nobody.
        replay: the id of the quarantined rows that it replays (they are in `ops.quarantine`); such a batch reads
            nothing else, and keeps the position of the stream.
        replayed_rows: the number of these rows.
        restores: the version whose rows it restores, since the gate refused a later version (ADR 0018), or a person
            repairs the table (ADR 0061); such a batch reads nothing, and the next batch reads again what the batches
            after that version consumed.
        undoes: the tokens of all batches after that version, also of earlier restores.
        restores_beside: name of the quarantine and of the tombstones -> the version that a backup has of it, and that
            comes back, too; without it, that before the first write of the undone batches.
        repair: the repair that a person has asked for; None if the gate refused a later version.
        no_reload: the landing files of those batches are not loaded again.
        rebuild: the id of the rebuild that replaced all rows; the ranges are the sources of the new rows.
        deletes: the rows that it deletes, for people: a condition, or the name of a request, and never a value of a
            person. Such a batch reads nothing, and keeps the position of the stream.
    """

    model_config = ConfigDict(frozen=True)

    ranges: dict[str, tuple[int | None, int]] = Field(default_factory=dict)
    source_ids: dict[str, str] = Field(default_factory=dict)
    rebuilt: tuple[str, ...] = ()
    references: dict[str, PinnedTable] = Field(default_factory=dict)
    files: int = 0
    files_digest: str = ""
    more_files: bool = False
    replaces_files: bool = False
    offsets: OffsetRanges = Field(default_factory=dict)
    topic_ids: dict[str, str] = Field(default_factory=dict)
    epochs: dict[str, dict[int, int]] = Field(default_factory=dict)
    unordered: dict[str, int] = Field(default_factory=dict)
    snapshot_at: Instant | None = None
    snapshots: tuple[Instant, ...] = ()
    waiting: tuple[Instant, ...] = ()
    released: tuple[Instant, ...] = ()
    reprocess: bool = False
    suppressed: SuppressedKeys | None = None
    replay: str = ""
    replayed_rows: int = 0
    restores: int | None = None
    undoes: tuple[str, ...] = ()
    restores_beside: dict[str, int] = Field(default_factory=dict)
    repair: Repair | None = None
    no_reload: bool = False
    rebuild: str = ""
    deletes: str = ""

    def at_same_position(self, **new: Any) -> BatchSources:
        """Return the sources of a batch that reads nothing and keeps these positions, with the attributes `new`."""
        offsets = self.offsets.items()
        return BatchSources(
            ranges={table: (upto, upto) for table, (_, upto) in self.ranges.items()},
            source_ids=self.source_ids,
            offsets={topic: {at: (end, end) for at, (_, end) in spans.items()} for topic, spans in offsets},
            topic_ids=self.topic_ids,
            epochs=self.epochs,
            snapshot_at=self.snapshot_at,
            waiting=self.waiting,
            **new,
        )

    def with_ranges_of(self, streams: Collection[BatchSources]) -> BatchSources:
        """Return these sources with the versions that the last batches of several streams have consumed.

        The streams of a table share out its sources. While they change, two may know the same position of a source.
        """
        ranges = [(table, span) for sources in streams for table, span in sources.ranges.items()]
        ids = [(table, table_id) for sources in streams for table, table_id in sources.source_ids.items()]
        return self.model_copy(update={"ranges": dict(ranges), "source_ids": dict(ids)})

    def only(self, tables: Collection[str]) -> BatchSources:
        """Return the consumed versions of these source tables alone."""
        return BatchSources(
            ranges={table: span for table, span in self.ranges.items() if table in tables},
            source_ids={table: table_id for table, table_id in self.source_ids.items() if table in tables},
        )

    @property
    def reads_nothing(self) -> bool:
        """Whether a batch of source tables only keeps its position."""
        is_other = self.replay or self.reprocess or self.rebuild or self.deletes or self.restores is not None
        has_snapshots = self.snapshot_at or self.snapshots or self.waiting or self.released
        return not (is_other or has_snapshots) and all(after == upto for after, upto in self.ranges.values())

    @property
    def adds_deliveries(self) -> bool:
        """Whether a batch may add whole deliveries to an interval: replays add, and deletions delete, single rows."""
        return not (self.replay or self.deletes)

    @property
    def erases(self) -> bool:
        """Whether a batch deletes rows of subjects that must never come back."""
        return self.deletes.startswith(ERASURE)

    def consumed_version(self, table: str, table_id: str) -> int | None:
        """Return the last version consumed from the table with this id; None if another table has replaced it."""
        return self.ranges[table][1] if self.source_ids.get(table) == table_id else None

    def needed_version(self, table: str, table_id: str, *, is_closed: bool) -> int | None:
        """Return the version of the table with this id that a batch still needs; None if it needs none.

        The next batch begins after the version that was consumed. A version that only references look into is needed
        until the batch is closed: closing it after a crash judges its rows again.
        """
        pinned = self.references.get(table)
        if pinned and pinned.table_id == table_id:
            return None if is_closed else pinned.version
        return self.consumed_version(table, table_id)


class Intent(BaseModel):
    """The record of what an attempt is about to commit; the ledger gets it before the commit.

    Several intents may have the same `batch_seq`; the log lets one token win. `planned_at` is the time of the batch,
    by which its rules read the clock; None for a batch of an earlier Millrace.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    table_id: str
    stream: str
    batch_seq: int
    token: str
    interval_start: Instant
    interval_end: Instant
    run_id: str
    spec_hash: str
    sources: BatchSources
    planned_at: Instant | None = None

    def user_metadata(self) -> str:
        """Return the `userMetadata` of the commit, which holds the intent."""
        return json.dumps({USER_METADATA_KEY: self.model_dump(mode="json")}, sort_keys=True)

    @property
    def app_id(self) -> str:
        """Delta's application id of the intent's stream."""
        return Stream(self.table, self.stream).app_id

    @property
    def interval(self) -> Interval:
        """The interval of the batch."""
        return Interval(start=self.interval_start, end=self.interval_end)

    @property
    def intervals_read_again(self) -> tuple[Instant, ...]:
        """The intervals whose rows it reads from the source completely, also rows that were read before."""
        if self.sources.replay:
            return ()
        if self.sources.snapshot_at:
            return tuple({self.sources.snapshot_at, *self.sources.released})
        return (self.interval_start,) if self.sources.reprocess else ()

    def secondary_app_id(self, name: str) -> str:
        """Return Delta's application id of the batch in a secondary table, such as `silver_tombstones.flights`.

        It contains the id of the main table, so that rows of an earlier main table do not count.
        """
        return f"millrace/{name}/{self.table_id}/{self.stream}"


@dataclass(frozen=True)
class Winner:
    """The attempt that became a batch, with the version of its commit."""

    intent: Intent
    version: int

    @property
    def batch_seq(self) -> int:
        """The number of the batch."""
        return self.intent.batch_seq

    @property
    def token(self) -> str:
        """The token of the attempt."""
        return self.intent.token


@dataclass(frozen=True)
class StreamPosition:
    """The position of a stream, from one reading of the log up to `version`: its last committed batch."""

    table_id: str
    version: int
    last: Winner | None = None

    @property
    def next_seq(self) -> int:
        """The number of the next batch: the last committed txn + 1, as a compare-and-swap on the log."""
        return self.last.batch_seq + 1 if self.last else 1

    @property
    def last_sources(self) -> BatchSources:
        """The sources of the last batch."""
        return self.last.intent.sources if self.last else BatchSources()


def new_token() -> str:
    """Return a random id for an attempt."""
    return uuid4().hex


def winner_of(commit: Commit, app_id: str) -> Winner | None:
    """Return the batch of `app_id` in a commit; None if the commit has none."""
    if app_id not in commit.txns or not commit.metadata:
        return None
    return Winner(Intent.model_validate(commit.metadata), commit.version)


def files_digest(files: tuple[FileFact, ...]) -> str:
    """Return the digest of a set of files in any order."""
    lines = sorted(f"{file.path}\t{file.checksum}" for file in files)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

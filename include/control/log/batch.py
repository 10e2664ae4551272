"""The words of one batch: its stream, its intent, its place in the log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from include.contracts.interval import Instant
from include.control.log.delta_log import USER_METADATA_KEY, Commit


@dataclass(frozen=True)
class Stream:
    """An independently ordered sequence of batches into one table.

    >>> Stream("silver.flights").app_id
    'millrace/silver.flights/main'
    """

    table: str
    name: str = "main"

    @property
    def app_id(self) -> str:
        """Delta's application id of the stream; its txnVersion is the batch_seq."""
        return f"millrace/{self.table}/{self.name}"


@dataclass(frozen=True, slots=True)
class FileFact:
    """What identifies one source file: path, size and checksum; never its time alone.

    Attributes:
        path: relative to the landing root.
        size: bytes.
        mtime_ns: modification time, which only saves reading a file again whose identity is known.
        checksum: SHA-256 of the content, or `etag:` and the entity tag of an object in a bucket.
        defect: why the file cannot be loaded; empty for a sound one.
        columns: the file's own columns in order, where its format says them (CSV, Parquet, Avro).
        layout: how its content lies where files of one format differ: `JSON_ARRAY`, what ends the records of a
            CSV file other than a line feed, `MIXED_LINE_ENDS`, or a digest of its columns' types.
    """

    path: str
    size: int
    mtime_ns: int
    checksum: str = ""
    defect: str = ""
    columns: tuple[str, ...] = ()
    layout: str = ""


JSON_ARRAY = "array"
"""The layout of a JSON file that is one array; JSON lines have none to name."""

MIXED_LINE_ENDS = "mixed"
"""The layout of a CSV file whose records end in more than one way."""


OffsetRanges = dict[str, dict[int, tuple[int, int]]]
"""topic -> partition -> (first offset, one after the last)."""

UNDO = "undo of "
"""How `BatchSources.rebuild` begins where a batch undoes a rebuild; the id of that one follows."""


class BatchSources(BaseModel):
    """What a batch reads, pinned.

    Attributes:
        ranges: source table -> (version already consumed, version to consume up to); None consumes from the start.
        source_ids: source table -> Delta's id of it: a table that was built anew begins at version 0 again.
        files: number of source files (the list is in `ops.files`).
        files_digest: digest of their paths and checksums.
        more_files: the interval had further files, to be loaded by later batches.
        replaces_files: the files take the place of what was loaded before under their names.
        offsets: the Kafka messages that it reads; the next batch starts where they end.
        topic_ids: topic -> Kafka's id of it: a topic that was created again begins at offset 0 again.
        snapshot_at: start of the interval whose full snapshot the target now holds.
        snapshots: the intervals whose full snapshots go on top of a table with history, oldest first; none where all
            snapshots are put in order anew.
        waiting: the intervals whose full snapshots do not count yet; none of their rows is read.
        released: the intervals that were among these before, and are read whole now.
        reprocess: the interval's rows are read again, whatever was consumed.
        replay: id of the quarantined rows that it tries once more (they are in `ops.quarantine`), and of nothing else;
            what the stream has consumed is carried on as it was.
        replayed_rows: how many.
        restores: the version whose rows it puts back, since the gate refused what came after (ADR 0018); it reads
            nothing, and what the batches above that version had consumed is to be read again.
        undoes: the tokens of those batches.
        rebuild: the id of the rebuild that has put other rows in the place of all that were there; the ranges say what
            they were built from.
    """

    model_config = ConfigDict(frozen=True)

    ranges: dict[str, tuple[int | None, int]] = Field(default_factory=dict)
    source_ids: dict[str, str] = Field(default_factory=dict)
    files: int = 0
    files_digest: str = ""
    more_files: bool = False
    replaces_files: bool = False
    offsets: OffsetRanges = Field(default_factory=dict)
    topic_ids: dict[str, str] = Field(default_factory=dict)
    snapshot_at: Instant | None = None
    snapshots: tuple[Instant, ...] = ()
    waiting: tuple[Instant, ...] = ()
    released: tuple[Instant, ...] = ()
    reprocess: bool = False
    replay: str = ""
    replayed_rows: int = 0
    restores: int | None = None
    undoes: tuple[str, ...] = ()
    rebuild: str = ""

    def replaying(self, replay: str, rows: int) -> BatchSources:
        """The sources of a replay that follows a batch with these."""
        return self._nothing_new().model_copy(update={"replay": replay, "replayed_rows": rows})

    def restoring(self, version: int, undoes: Iterable[str]) -> BatchSources:
        """The sources of a batch that puts back the rows of `version`, whose batch had these."""
        return self._nothing_new().model_copy(update={"restores": version, "undoes": tuple(undoes)})

    def rebuilt(self, rebuild: str) -> BatchSources:
        """The sources of a batch that puts rows in their place that were built from these."""
        return self._nothing_new().model_copy(update={"rebuild": rebuild})

    def _nothing_new(self) -> BatchSources:
        """The sources of a batch that reads nothing after one with these, and loses no position."""
        read = self.offsets.items()
        return BatchSources(
            ranges={table: (upto, upto) for table, (_, upto) in self.ranges.items()},
            source_ids=self.source_ids,
            offsets={topic: {at: (end, end) for at, (_, end) in spans.items()} for topic, spans in read},
            topic_ids=self.topic_ids,
            snapshot_at=self.snapshot_at,
            waiting=self.waiting,
        )

    def consumed(self, table: str, table_id: str) -> int | None:
        """The version up to which this very table was consumed; None for one that was built anew since."""
        return self.ranges[table][1] if self.source_ids.get(table) == table_id else None


class Intent(BaseModel):
    """What one attempt is about to commit; written to the ledger before the commit.

    Several intents may claim one `batch_seq`; the log lets one token win.
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

    def user_metadata(self) -> str:
        """The `userMetadata` of the commit: the intent without what the log itself knows."""
        return json.dumps({USER_METADATA_KEY: self.model_dump(mode="json")}, sort_keys=True)

    @property
    def app_id(self) -> str:
        """Delta's application id of the intent's stream."""
        return Stream(self.table, self.stream).app_id

    def app_id_beside(self, name: str) -> str:
        """Delta's application id of the batch's rows in a table beside its own, such as `silver_tombstones.flights`.

        It names the table that it is about by its id: what an earlier table has left there counts for nothing.
        """
        return f"millrace/{name}/{self.table_id}/{self.stream}"


@dataclass(frozen=True)
class Winner:
    """The attempt that became a batch, as its commit says."""

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
    """Where a stream stands, from one reading of the log.

    Attributes:
        table_id: Delta's id of the table.
        version: the newest version that was read.
        last: the last committed batch of the stream.
    """

    table_id: str
    version: int
    last: Winner | None = None

    @property
    def next_seq(self) -> int:
        """Last committed txn + 1: a compare-and-swap on the log itself."""
        return self.last.batch_seq + 1 if self.last else 1

    @property
    def last_sources(self) -> BatchSources:
        """What the last batch consumed."""
        return self.last.intent.sources if self.last else BatchSources()


def new_token() -> str:
    """A random id for one attempt."""
    return uuid4().hex


def winner_of(commit: Commit, app_id: str) -> Winner | None:
    """The batch of `app_id` that a commit made, if it made one."""
    if app_id not in commit.txns or not commit.metadata:
        return None
    return Winner(Intent.model_validate(commit.metadata), commit.version)


def files_digest(files: tuple[FileFact, ...]) -> str:
    """A digest of a set of files, whatever their order."""
    lines = sorted(f"{file.path}\t{file.checksum}" for file in files)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

"""The events of the ledger: the columns and the rows of `ops.batches` and `ops.files`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from millrace.contracts.interval import Interval
from millrace.contracts.job.report import FileRows
from millrace.control.log.batch import FileFact, Intent, Winner

_TIME = pa.timestamp("us", tz="UTC")

_COMMON_COLUMNS = [
    ("recorded_at", _TIME),
    ("event", pa.string()),
    ("table", pa.string()),
    ("table_id", pa.string()),
    ("stream", pa.string()),
    ("batch_seq", pa.int64()),
    ("token", pa.string()),
]
"""The first columns of both tables: when, what happened, and to which attempt at which batch."""

BATCHES = pa.schema(
    [
        *_COMMON_COLUMNS,
        ("version", pa.int64()),
        ("interval_start", _TIME),
        ("interval_end", _TIME),
        ("run_id", pa.string()),
        ("intent", pa.string()),
        ("rows", pa.string()),
    ]
)

FILES = pa.schema(
    [
        *_COMMON_COLUMNS,
        ("path", pa.string()),
        ("size", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("checksum", pa.string()),
        ("reason", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("layout", pa.string()),
        ("interval_start", _TIME),
        ("interval_end", _TIME),
        ("version", pa.int64()),
        *((f"rows_{name}", pa.int64()) for name in FileRows.model_fields),
    ]
)


_INTENT_COLUMNS = {"table", "table_id", "stream", "batch_seq", "token", "interval_start", "interval_end"}

NO_TOKEN = ""
"""The token of an event that belongs to no batch."""

FACTS = ("path", "size", "mtime_ns", "checksum", "reason", "columns", "layout")
"""The columns of `ops.files` that describe the file."""


@dataclass(frozen=True)
class Failure:
    """A file that the last attempt could not load.

    Attributes:
        file: the file, with its defect.
        attempts: the number of failed attempts with this content; a replay starts the count again at 0.
        interval_start: the start of the interval that the file was delivered for.
        given_up: a person has decided that runs continue without the file.
        at: when it failed last.
    """

    file: FileFact
    attempts: int
    interval_start: datetime | None = field(default=None, compare=False)
    given_up: bool = False
    at: datetime | None = field(default=None, compare=False)


class BatchEvent(StrEnum):
    """The events of an attempt, in this order; one that has failed has no further event.

    An attempt without a further event goes on, or its driver died. Only attempts to load landing files record that they
    have failed. `closing` means that a run reads landing files again to close the batch of a dead driver, and
    `outlived` that this run has lived on, whether it could close the batch or not.

    A restore adds an event, with its own version, to each batch that it takes out of the table or puts back: `undone`,
    `undone_for_good` if the landing files of the batch are not loaded again, or `redone`. The one with the highest
    version counts.
    """

    INTENT = "intent"
    FAILED = "failed"
    COMMITTED = "committed"
    CLOSING = "closing"
    OUTLIVED = "outlived"
    REWRITTEN = "rewritten"
    DELETED = "deleted"
    CLOSED = "closed"
    REDONE = "redone"
    UNDONE = "undone"
    UNDONE_FOR_GOOD = "undone_for_good"


class FileEvent(StrEnum):
    """The events of a landing file.

    - planned: an attempt loads the file; it is loaded if the token of the attempt wins.
    - loaded: a batch has loaded the file, with these row counts.
    - failed: the file cannot be loaded, which counts as an attempt. With a token: the driver of that attempt, or its
      Spark, died while it loaded this file alone.
    - replayed: a person wants another attempt, although earlier attempts failed.
    - given_up: a person wants no further attempt; the reason holds the person's name.
    - unreachable: the storage did not deliver the file, which counts as no attempt.
    - seen: the loaded file has another time and the same content, which need not be read again.
    - touched: the failed file has another time and the same content.
    - closing: a run reads the file again, alone, before it closes the batch of a dead driver, which has loaded it.
    - rewritten: an erasure takes records out of the loaded file: this content counts as loaded instead, by the token of
      the batch that loaded the one before.
    - deleted: an erasure deletes the loaded file; the token is that of the batch that loaded it.
    - outlived: that run has lived on, whether it could read the file or not.
    """

    PLANNED = "planned"
    LOADED = "loaded"
    FAILED = "failed"
    REPLAYED = "replayed"
    GIVEN_UP = "given_up"
    UNREACHABLE = "unreachable"
    SEEN = "seen"
    TOUCHED = "touched"
    CLOSING = "closing"
    OUTLIVED = "outlived"
    REWRITTEN = "rewritten"
    DELETED = "deleted"


def batch_event(event: BatchEvent, intent: Intent, version: int | None = None) -> dict[str, Any]:
    """Return the row of `ops.batches` for an event of an attempt."""
    return {
        **intent.model_dump(include={*_INTENT_COLUMNS, "run_id"}),
        "event": event.value,
        "version": version,
        "intent": intent.model_dump_json(),
        "rows": None,
    }


def file_event(event: FileEvent, intent: Intent, file: FileFact) -> dict[str, Any]:
    """Return the row of `ops.files` for a file of an attempt."""
    return {**intent.model_dump(include=_INTENT_COLUMNS), **_file_columns(event, file)}


def batchless_event(
    event: FileEvent, table: str, table_id: str, interval: Interval, file: FileFact, died: Intent | None = None
) -> dict[str, Any]:
    """Return the row of `ops.files` for a file that belongs to no batch; it may name the attempt that died with it."""
    attempt: dict[str, Any] = {"stream": "", "batch_seq": None, "token": NO_TOKEN}
    if died:
        attempt = died.model_dump(include={*attempt})
    of_table = {"table": table, "table_id": table_id, **attempt}
    of_interval = {"interval_start": interval.start, "interval_end": interval.end}
    return {**of_table, **of_interval, **_file_columns(event, file), "reason": file.defect}


def erased_event(event: FileEvent, loaded: dict[str, Any], file: FileFact, reason: str) -> dict[str, Any]:
    """Return the row of `ops.files` for what an erasure does to a file; `loaded` is the event of its content before."""
    of_batch = {name: loaded[name] for name in _INTENT_COLUMNS}
    return {**of_batch, **_file_columns(event, file), "reason": reason}


def loaded_event(winner: Winner, file: FileFact, rows: FileRows) -> dict[str, Any]:
    """Return the row of `ops.files` for a file that a batch has loaded, with its row counts."""
    counts = {f"rows_{name}": number for name, number in rows}
    return {**file_event(FileEvent.LOADED, winner.intent, file), "version": winner.version, **counts}


def _file_columns(event: FileEvent, file: FileFact) -> dict[str, Any]:
    facts = {name: getattr(file, name) for name in ("path", "size", "mtime_ns", "checksum", "layout")}
    return {**facts, "columns": list(file.columns), "event": event.value}


def file_fact(row: dict[str, Any]) -> FileFact:
    """Return the file of an event."""
    facts = {key: row[key] for key in ("path", "size", "mtime_ns", "checksum")}
    columns, layout = tuple(row["columns"] or ()), row["layout"] or ""
    return FileFact(**facts, defect=row["reason"] or "", columns=columns, layout=layout)


def recorded_winner(row: dict[str, Any]) -> Winner:
    """Return the batch of a committed event."""
    return Winner(Intent.model_validate(json.loads(row["intent"])), row["version"])


def failures_of(events: Iterable[dict[str, Any]], winners: Collection[str]) -> dict[str, Failure]:
    """Return the files that the last attempt could not load: path -> failure.

    Args:
        events: all events of the files that ever failed, oldest first.
        winners: the tokens of the attempts that became batches.
    """
    failed: dict[str, Failure] = {}
    for row in events:
        path, before = row["path"], failed.get(row["path"])
        if row["token"] in winners:  # Also after its death was counted: the server went on, and committed.
            failed.pop(path, None)
        elif row["event"] == FileEvent.FAILED:
            file, start = file_fact(row), row["interval_start"]
            earlier = before if before and before.file.checksum == file.checksum else Failure(file, attempts=0)
            at = row["recorded_at"]
            failed[path] = replace(earlier, file=file, attempts=earlier.attempts + 1, interval_start=start, at=at)
        elif before and row["event"] == FileEvent.REPLAYED:
            failed[path] = replace(before, attempts=0, given_up=False)
        elif before and row["event"] == FileEvent.GIVEN_UP:
            failed[path] = replace(before, given_up=True, file=file_fact(row))
        elif before and row["event"] == FileEvent.TOUCHED and row["checksum"] == before.file.checksum:
            failed[path] = replace(before, file=replace(before.file, mtime_ns=row["mtime_ns"]))
    return failed

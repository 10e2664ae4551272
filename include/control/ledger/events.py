"""The events of the ledger: the columns of `ops.batches` and `ops.files`, and the rows that say what happened."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from include.contracts.interval import Interval
from include.contracts.job.report import FileRows
from include.control.log.batch import FileFact, Intent, Winner

_TIME = pa.timestamp("us", tz="UTC")

_SAID_OF_ALL = [
    ("recorded_at", _TIME),
    ("event", pa.string()),
    ("table", pa.string()),
    ("table_id", pa.string()),
    ("stream", pa.string()),
    ("batch_seq", pa.int64()),
    ("token", pa.string()),
]
"""What both tables begin with: when, what happened, and to which attempt at which batch."""

BATCHES = pa.schema(
    [
        *_SAID_OF_ALL,
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
        *_SAID_OF_ALL,
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


NO_TOKEN = ""
"""The token of what is said of a file beside any batch."""

FACTS = ("path", "size", "mtime_ns", "checksum", "reason", "columns", "layout")
"""The columns of `ops.files` that say which file it is."""


@dataclass(frozen=True)
class Failure:
    """A file that could not be loaded when last tried.

    Attributes:
        file: the file, with its defect.
        attempts: how many runs in a row have failed because of this content, since a person had it tried again.
        interval_start: start of the interval that it was delivered for.
        given_up: whether a person has decided that runs go on without it.
    """

    file: FileFact
    attempts: int
    interval_start: datetime | None = field(default=None, compare=False)
    given_up: bool = False


class BatchEvent(StrEnum):
    """What the ledger says of an attempt, in this order."""

    INTENT = "intent"
    COMMITTED = "committed"
    CLOSED = "closed"


class FileEvent(StrEnum):
    """What the ledger says of a source file; a planned file is loaded once its token won.

    A replayed one is to be tried again, however often it failed; one that a person has given up is not. An unreachable
    one the storage did not hand over. A seen one is loaded, and has another time since: its content need not be read
    again to know it. A touched one could not be loaded, and likewise has another time and the same content.
    """

    PLANNED = "planned"
    LOADED = "loaded"
    FAILED = "failed"
    REPLAYED = "replayed"
    GIVEN_UP = "given_up"
    UNREACHABLE = "unreachable"
    SEEN = "seen"
    TOUCHED = "touched"


def batch_event(event: BatchEvent, intent: Intent, version: int | None = None) -> dict[str, Any]:
    """What happened to an attempt."""
    named = intent.model_dump(
        include={"table", "table_id", "stream", "batch_seq", "token", "interval_start", "interval_end", "run_id"}
    )
    return {
        **named,
        "recorded_at": datetime.now(UTC),
        "event": event.value,
        "version": version,
        "intent": intent.model_dump_json(),
        "rows": None,
    }


def file_event(event: FileEvent, intent: Intent, file: FileFact) -> dict[str, Any]:
    """What an attempt means to one of its files."""
    named = intent.model_dump(
        include={"table", "table_id", "stream", "batch_seq", "token", "interval_start", "interval_end"}
    )
    return {**named, **_fact(event, file)}


def batchless_event(event: FileEvent, table: str, table_id: str, interval: Interval, file: FileFact) -> dict[str, Any]:
    """What is said of a file beside any batch."""
    blank = {"table": table, "table_id": table_id, "stream": "", "batch_seq": None, "token": NO_TOKEN}
    said = {**blank, "interval_start": interval.start, "interval_end": interval.end}
    return {**said, **_fact(event, file), "reason": file.defect}


def loaded_event(winner: Winner, file: FileFact, rows: FileRows) -> dict[str, Any]:
    """A file that a batch has loaded, and what became of its records."""
    fates = {f"rows_{name}": number for name, number in rows}
    return {**file_event(FileEvent.LOADED, winner.intent, file), "version": winner.version, **fates}


def _fact(event: FileEvent, file: FileFact) -> dict[str, Any]:
    facts = {name: getattr(file, name) for name in ("path", "size", "mtime_ns", "checksum", "layout")}
    return {**facts, "columns": list(file.columns), "recorded_at": datetime.now(UTC), "event": event.value}


def file_fact(row: dict[str, Any]) -> FileFact:
    """The file that an event is about."""
    known = {key: row[key] for key in ("path", "size", "mtime_ns", "checksum")}
    columns, layout = tuple(row["columns"] or ()), row["layout"] or ""
    return FileFact(**known, defect=row["reason"] or "", columns=columns, layout=layout)


def recorded_winner(row: dict[str, Any]) -> Winner:
    """The batch that a committed event is about."""
    return Winner(Intent.model_validate(json.loads(row["intent"])), row["version"])


def failures_of(events: Iterable[dict[str, Any]], winners: Collection[str]) -> dict[str, Failure]:
    """path -> failure, of the files that could not be loaded when last tried.

    Args:
        events: all that is said of files that ever failed, oldest first.
        winners: the tokens of attempts that became batches.
    """
    failed: dict[str, Failure] = {}
    for row in events:
        path, before = row["path"], failed.get(row["path"])
        if row["event"] == FileEvent.FAILED:
            failed[path] = _failed_again(before, file_fact(row), row["interval_start"])
        elif row["token"] in winners:
            failed.pop(path, None)
        elif before and row["event"] == FileEvent.REPLAYED:
            failed[path] = replace(before, attempts=0, given_up=False)
        elif before and row["event"] == FileEvent.GIVEN_UP:
            failed[path] = replace(before, given_up=True, file=file_fact(row))
        elif before and row["event"] == FileEvent.TOUCHED and row["checksum"] == before.file.checksum:
            failed[path] = replace(before, file=replace(before.file, mtime_ns=row["mtime_ns"]))
    return failed


def _failed_again(before: Failure | None, file: FileFact, interval_start: datetime) -> Failure:
    """The failure of a file that has failed once more; other content is counted anew."""
    if before is None or before.file.checksum != file.checksum:
        return Failure(file, 1, interval_start)
    return replace(before, file=file, attempts=before.attempts + 1, interval_start=interval_start)

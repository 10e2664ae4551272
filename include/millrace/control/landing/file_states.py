"""The state of each landing file of a bronze table, by the events of the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from millrace.contracts.file_status import FileStatus
from millrace.contracts.interval import Interval
from millrace.contracts.job.report import FileRows
from millrace.control.ledger.events import NO_TOKEN, BatchEvent, FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.errors import BadInputError

_STATUS_WITHOUT_BATCH = {
    FileEvent.FAILED.value: FileStatus.FAILED,
    FileEvent.GIVEN_UP.value: FileStatus.GIVEN_UP,
    FileEvent.UNREACHABLE.value: FileStatus.UNREACHABLE,
    FileEvent.SEEN.value: FileStatus.LOADED,
}

_UNDONE = {
    BatchEvent.UNDONE: "a restore has removed its rows; the run of its interval loads it again",
    BatchEvent.UNDONE_FOR_GOOD: "a restore has removed its rows, and it is not loaded again",
}


@dataclass(frozen=True)
class FileState:
    """The state of one landing file.

    Attributes:
        path: relative to the landing root.
        status: its status.
        seen_at: when an attempt first found it.
        interval: the interval that last planned it.
        size: bytes.
        checksum: SHA-256 of the content, or the entity tag of an object in a bucket.
        tries: how often it was planned, or failed without that.
        changed_at: when the last of its events was recorded.
        batch_seq: the batch that loaded it, also if it changed and failed afterwards.
        version: the table version of that batch.
        rows: the counts of its records; None while the batch is not closed.
        reason: why it could not be loaded, or the error of the storage; of an undone file whether it is loaded again.
    """

    path: str
    status: FileStatus
    seen_at: datetime
    interval: Interval
    size: int
    checksum: str
    tries: int
    changed_at: datetime = field(compare=False)
    batch_seq: int | None = None
    version: int | None = None
    rows: FileRows | None = None
    reason: str = ""


def file_states(
    ledger: Ledger,
    table: str,
    table_id: str,
    is_reachable: Callable[[str], bool] = lambda _: False,
    paths: Collection[str] = (),
) -> list[FileState]:
    """Return the state of every file that was ever planned for the table or failed, sorted by path.

    Earlier failures of the storage do not count for a file that the storage delivers now (`is_reachable`). With
    `paths`, only these files are listed, and little else of the ledger is read.
    """
    events: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in ledger.file_events(table, table_id, **({"path": paths} if paths else {})):
        events[event["path"]].append(event)
    numbers = {event["batch_seq"] for of_file in events.values() for event in of_file} - {None}
    among = {"batch_seq": numbers} if paths else {}
    versions = ledger.versions(table, table_id, **among) if numbers else {}
    undone = ledger.undone(table, table_id)
    states = []
    for path in sorted(events):
        state = _state(events[path], versions, undone)
        if state.status is FileStatus.UNREACHABLE and is_reachable(path):
            others = [event for event in events[path] if event["event"] != FileEvent.UNREACHABLE]
            states += [_state(others, versions, undone)] if others else []
        else:
            states.append(state)
    return states


def _state(events: list[dict[str, Any]], versions: Mapping[str, int], undone: Mapping[str, BatchEvent]) -> FileState:
    """Return the state of one file from its events, oldest first."""
    winners = [event for event in events if event["token"] in versions]
    outcomes = [event for event in events if event["token"] in versions or event["event"] in _STATUS_WITHOUT_BATCH]
    last = (outcomes or events)[-1]
    batch: dict[str, Any] = {}
    if winners:
        token = winners[-1]["token"]
        closed = [event for event in winners if event["event"] == FileEvent.LOADED and event["token"] == token]
        rows = {name: closed[-1][f"rows_{name}"] for name in FileRows.model_fields} if closed else None
        batch = {"batch_seq": winners[-1]["batch_seq"], "version": versions[token], "rows": rows and FileRows(**rows)}
    tries = [event["token"] for event in events if event["event"] in (FileEvent.PLANNED, FileEvent.FAILED)]
    is_undone = last["token"] in undone
    status = FileStatus.UNDONE if is_undone else _STATUS_WITHOUT_BATCH.get(last["event"], FileStatus.PLANNED)
    return FileState(
        path=last["path"],
        status=FileStatus.LOADED if last["token"] in versions else status,
        seen_at=events[0]["recorded_at"],
        interval=Interval(start=last["interval_start"], end=last["interval_end"]),
        size=last["size"],
        checksum=last["checksum"],
        tries=tries.count(NO_TOKEN) + len({*tries} - {NO_TOKEN}),
        changed_at=events[-1]["recorded_at"],
        reason=_UNDONE[undone[last["token"]]] if is_undone else last["reason"] or "",
        **batch,
    )


def give_up(table: str, table_id: str, file: FileState, by: str, reason: str, ledger: Ledger) -> None:
    """Record that a person gives a file up, and why.

    Raises:
        BadInputError: no reason is given, or the last attempt to load the file has not failed.
    """
    if not reason.strip():
        raise BadInputError(f"why should runs go on without {file.path}?", "State the reason.")
    failure = ledger.failed_files(table, table_id).get(file.path)
    if failure is None:
        raise BadInputError(f"{file.path} is {file.status}: only a file that could not be loaded can be given up")
    fact = replace(failure.file, defect=f"by {by}: {reason} ({failure.file.defect})")
    ledger.record_files(FileEvent.GIVEN_UP, table, table_id, file.interval, [fact])

"""What became of each landing file of a bronze table, as the ledger tells it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.contracts.file_status import FileStatus
from include.contracts.interval import Interval
from include.contracts.job.report import FileRows
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger

_WITHOUT_BATCH = {
    FileEvent.FAILED.value: FileStatus.FAILED,
    FileEvent.GIVEN_UP.value: FileStatus.GIVEN_UP,
    FileEvent.UNREACHABLE.value: FileStatus.UNREACHABLE,
    FileEvent.SEEN.value: FileStatus.LOADED,
}


@dataclass(frozen=True)
class FileState:
    """One landing file.

    Attributes:
        path: relative to the landing root.
        status: where it stands.
        seen_at: when an attempt first met it.
        interval: the interval that it was last planned for.
        size: bytes.
        checksum: SHA-256 of the content, or the entity tag of an object in a bucket.
        tries: how often it was planned, or failed.
        batch_seq: the batch that loaded it; of a file that changed and then failed, the one that loaded it before.
        version: the table version which that batch made.
        rows: what became of its records; None while the batch is not closed.
        reason: why it could not be loaded, or what the storage said.
    """

    path: str
    status: FileStatus
    seen_at: datetime
    interval: Interval
    size: int
    checksum: str
    tries: int
    batch_seq: int | None = None
    version: int | None = None
    rows: FileRows | None = None
    reason: str = ""


def file_states(
    ledger: Ledger, table: str, table_id: str, is_reachable: Callable[[str], bool] = lambda _: False
) -> list[FileState]:
    """Every file that was ever planned for the table, or failed, by path.

    Args:
        ledger: the ledger.
        table: the table.
        table_id: Delta's id of it.
        is_reachable: whether the storage delivers a file by now. If so, it does not count that it did not before.
    """
    events: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in ledger.file_events(table, table_id):
        events[event["path"]].append(event)
    versions = ledger.versions(table, table_id)
    found = []
    for path in sorted(events):
        state = _state(events[path], versions)
        if state.status is FileStatus.UNREACHABLE and is_reachable(path):
            others = [event for event in events[path] if event["event"] != FileEvent.UNREACHABLE]
            found += [_state(others, versions)] if others else []
        else:
            found.append(state)
    return found


def _state(events: list[dict[str, Any]], versions: Mapping[str, int]) -> FileState:
    """The state of one file, from all that was said of it, oldest first."""
    of_winner = [event for event in events if event["token"] in versions]
    settled = [event for event in events if event["token"] in versions or event["event"] in _WITHOUT_BATCH]
    last = (settled or events)[-1]
    loaded = of_winner[-1] if of_winner else None
    batch = {"batch_seq": loaded["batch_seq"], "version": versions[loaded["token"]]} if loaded else {}
    return FileState(
        path=last["path"],
        status=_status(last, versions),
        seen_at=events[0]["recorded_at"],
        interval=Interval(start=last["interval_start"], end=last["interval_end"]),
        size=last["size"],
        checksum=last["checksum"],
        tries=sum(event["event"] in (FileEvent.PLANNED, FileEvent.FAILED) for event in events),
        rows=_rows(event for event in of_winner if loaded and event["token"] == loaded["token"]),
        reason=last["reason"] or "",
        **batch,
    )


def _status(last: Mapping[str, Any], versions: Mapping[str, int]) -> FileStatus:
    if last["token"] in versions:
        return FileStatus.LOADED
    return _WITHOUT_BATCH.get(last["event"], FileStatus.PLANNED)


def _rows(events: Iterable[Mapping[str, Any]]) -> FileRows | None:
    closed = [event for event in events if event["event"] == FileEvent.LOADED]
    return FileRows(**{name: closed[-1][f"rows_{name}"] for name in FileRows.model_fields}) if closed else None

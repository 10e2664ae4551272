"""The ledger: what each batch was planned to do, from which sources, and which attempts won.

`ops.batches` and `ops.files` are append-only; the state of a batch is the last event of its token. The ledger pairs
tokens with sources; which token won is said by the table's log alone (ADR 0002).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.contracts.interval import Interval
from include.contracts.job_report import FileRows, RowFates
from include.control.batch import FileFact, Intent, Winner
from include.control.ledger_events import (
    BATCHES,
    FACTS,
    FILES,
    BatchEvent,
    FileEvent,
    batch_event,
    batchless_event,
    file_event,
    file_fact,
    loaded_event,
    recorded_winner,
)
from include.control.loaded_files import LoadedFiles
from include.control.ops_table import OpsTable
from include.paths import LakehousePaths


@dataclass(frozen=True)
class Failure:
    """A file that could not be loaded when last tried.

    Attributes:
        file: the file, with its defect.
        attempts: how many runs in a row have failed because of this content.
    """

    file: FileFact
    attempts: int


class Ledger:
    """Reads and writes `ops.batches` and `ops.files` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._batches = OpsTable(paths.ops("batches"), BATCHES)
        self._files = OpsTable(paths.ops("files"), FILES)

    def record_intent(self, intent: Intent, files: Sequence[FileFact] = ()) -> None:
        """Pair the intent's token with its sources. Files go first: an intent implies that its files are known."""
        self._files.append([file_event(FileEvent.PLANNED, intent, file) for file in files])
        self._batches.append([batch_event(BatchEvent.INTENT, intent)])

    def record_committed(self, winners: Iterable[Winner]) -> None:
        """Write down which attempts the log let win."""
        events = [batch_event(BatchEvent.COMMITTED, winner.intent, winner.version) for winner in winners]
        self._batches.append(events)

    def record_closed(self, winner: Winner, rows: RowFates, rows_of_file: Mapping[str, FileRows] = {}) -> None:
        """Write down that the batch's secondary writes are done, its row fates, and the rows of each file.

        Args:
            winner: the batch.
            rows: the fates of its rows.
            rows_of_file: path -> what became of its records; bronze only.
        """
        files = [file for file in self.files_of(winner.intent) if file.path in rows_of_file] if rows_of_file else []
        self._files.append([loaded_event(winner, file, rows_of_file[file.path]) for file in files])
        event = batch_event(BatchEvent.CLOSED, winner.intent, winner.version)
        self._batches.append([{**event, "rows": rows.model_dump_json()}])

    def record_failed(self, table: str, table_id: str, interval: Interval, files: Sequence[FileFact]) -> None:
        """Write down files of an interval that cannot be loaded, each with its defect: one more failed attempt."""
        self._files.append([batchless_event(FileEvent.FAILED, table, table_id, interval, file) for file in files])

    def record_replayed(self, table: str, table_id: str, interval: Interval, file: FileFact) -> None:
        """Write down that a person wants a failed file to be tried again."""
        self._files.append([batchless_event(FileEvent.REPLAYED, table, table_id, interval, file)])

    def last_committed(self, table: str, table_id: str, stream: str) -> Winner | None:
        """The last batch of the stream that was resolved; the log may hold newer ones."""
        rows = self._batches.events(table, table_id=table_id, stream=stream, event=BatchEvent.COMMITTED)
        newest = max(rows, key=lambda row: (row["batch_seq"], row["version"]), default=None)
        return recorded_winner(newest) if newest else None

    def closed(self, winner: Winner) -> RowFates | None:
        """The row fates of a batch whose secondary writes are done, else None."""
        intent = winner.intent
        rows = self._batches.events(intent.table, token=intent.token, event=BatchEvent.CLOSED)
        return RowFates.model_validate_json(rows[-1]["rows"]) if rows else None

    def files_of(self, intent: Intent) -> tuple[FileFact, ...]:
        """The files that an intent was planned to load."""
        rows = self._files.events(intent.table, token=intent.token, event=FileEvent.PLANNED)
        return tuple(file_fact(row) for row in rows)

    def loaded_files(self, table: str, table_id: str) -> LoadedFiles:
        """Every file that a winning attempt loaded into the table, oldest first; a path once for each content."""
        tokens = pa.array(self.versions(table, table_id), pa.string())
        planned = self._files.event_columns(table, ("token", *FACTS), table_id=table_id, event=FileEvent.PLANNED)
        return LoadedFiles(planned.filter(pc.is_in(planned["token"], tokens)).select(FACTS))

    def file_events(self, table: str, table_id: str) -> list[dict[str, Any]]:
        """All that `ops.files` says of a table's files, oldest first."""
        return self._files.events(table, table_id=table_id)

    def versions(self, table: str, table_id: str) -> dict[str, int]:
        """token -> version, for every attempt that became a batch."""
        wanted = ("token", "version")
        rows = self._batches.events(table, wanted, table_id=table_id, event=BatchEvent.COMMITTED)
        return {row["token"]: row["version"] for row in rows}

    def replaced_files(self, table: str, table_id: str, after: int, upto: int) -> tuple[str, ...]:
        """The landing files whose rows were replaced in versions (after, upto] of the table, by path."""
        rows = self._batches.events(table, ("version", "intent"), table_id=table_id, event=BatchEvent.COMMITTED)
        winners = [recorded_winner(row) for row in rows if after < row["version"] <= upto]
        replacing = [winner.intent for winner in winners if winner.intent.sources.replaces_files]
        return tuple(sorted({file.path for intent in replacing for file in self.files_of(intent)}))

    def compact(self, table: str) -> None:
        """Put the many small files that hold the table's events together."""
        self._batches.compact(table)
        self._files.compact(table)

    def failures(self, table: str, table_id: str) -> dict[str, Failure]:
        """path -> failure, for every file that could not be loaded when last tried, and that nobody replayed since."""
        # Few files ever fail, if any: the events of all others are not gone through one by one.
        paths = {row["path"] for row in self._files.events(table, ("path",), table_id=table_id, event=FileEvent.FAILED)}
        events = self._files.events(table, ("event", "token", *FACTS), table_id=table_id) if paths else []
        tokens = self.versions(table, table_id) if paths else {}
        failed: dict[str, Failure] = {}
        for row in (row for row in events if row["path"] in paths):
            if row["event"] == FileEvent.FAILED:
                failed[row["path"]] = _failed_again(failed.get(row["path"]), file_fact(row))
            elif row["token"] in tokens or row["event"] == FileEvent.REPLAYED:
                failed.pop(row["path"], None)
        return failed


def _failed_again(before: Failure | None, file: FileFact) -> Failure:
    """The failure of a file that has failed once more; other content is counted anew."""
    is_same = before is not None and before.file.checksum == file.checksum
    return Failure(file, before.attempts + 1 if before and is_same else 1)

"""The ledger: what each batch was planned to do, from which sources, and which attempts won.

`ops.batches` and `ops.files` are append-only; the state of a batch is the last event of its token. The ledger pairs
tokens with sources; which token won is said by the table's log alone (ADR 0002).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from include.contracts.interval import Interval
from include.contracts.job.report import FileRows, RowCounts
from include.control.ledger.events import (
    BATCHES,
    FACTS,
    FILES,
    NO_TOKEN,
    BatchEvent,
    FileEvent,
    batch_event,
    batchless_event,
    file_event,
    file_fact,
    loaded_event,
    recorded_winner,
)
from include.control.ledger.loaded_files import LoadedFiles, Planned, loaded_files
from include.control.ledger.measures import Measures, measured, newest_of
from include.control.ledger.ops_table import OpsTable
from include.control.ledger.table_state import StatePart, TableStates, failing_without_harm
from include.control.log.batch import FileFact, Intent, Winner
from include.paths import LakehousePaths


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


class StreamEnd(BaseModel):
    """The last batch of a stream that the ledger knows.

    Attributes:
        intent: what it was to do.
        version: the version that it made.
        rows: its row counts; None while it is not known to be closed.
    """

    model_config = ConfigDict(frozen=True)

    intent: Intent
    version: int
    rows: RowCounts | None = None


class Streams(StatePart):
    """Where the streams of a table stand: a part of its state (ADR 25).

    Attributes:
        ends: stream -> its last batch. The log may hold newer ones, and the events may say that it was closed.
    """

    ends: dict[str, StreamEnd] = Field(default_factory=dict)


class Ledger:
    """Reads and writes `ops.batches` and `ops.files` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._paths = paths
        self._states = TableStates(paths)
        self._batches = OpsTable(paths.ops("batches"), BATCHES)
        self._files = OpsTable(paths.ops("files"), FILES)

    def record_intent(self, intent: Intent, files: Sequence[FileFact] = ()) -> None:
        """Pair the intent's token with its sources. Files go first: an intent implies that its files are known."""
        self._files.append([file_event(FileEvent.PLANNED, intent, file) for file in files])
        self._batches.append([batch_event(BatchEvent.INTENT, intent)])

    def record_committed(self, winners: Iterable[Winner]) -> None:
        """Write down which attempts the log let win."""
        known = list(winners)
        self._batches.append([batch_event(BatchEvent.COMMITTED, one.intent, one.version) for one in known])
        if known:
            with failing_without_harm(known[-1].intent.table):
                self._keep(known[-1])

    def record_closed(self, winner: Winner, rows: RowCounts, rows_of_file: Mapping[str, FileRows] = {}) -> None:
        """Write down that the batch's secondary writes are done, its row counts, and the rows of each file.

        Args:
            winner: the batch.
            rows: its row counts.
            rows_of_file: path -> what became of its records; bronze only.
        """
        files = [file for file in self.files_of(winner.intent) if file.path in rows_of_file] if rows_of_file else []
        self._files.append([loaded_event(winner, file, rows_of_file[file.path]) for file in files])
        event = batch_event(BatchEvent.CLOSED, winner.intent, winner.version)
        self._batches.append([{**event, "rows": rows.model_dump_json()}])
        with failing_without_harm(winner.intent.table):
            self._keep(winner, rows)
            now = measured(self._paths.table(winner.intent.table))
            self._states.change(winner.intent.table, Measures, lambda kept: newest_of(kept, now))

    def _keep(self, winner: Winner, rows: RowCounts | None = None) -> None:
        """Let the state say where the stream ends now, unless it has come further."""
        intent = winner.intent

        def followed(kept: Streams | None) -> Streams:
            ends = kept.ends if kept and kept.table_id == intent.table_id else {}
            end = ends.get(intent.stream)
            if end and (end.version > winner.version or (end.version == winner.version and rows is None)):
                return Streams(table_id=intent.table_id, ends=ends)
            now = StreamEnd(intent=intent, version=winner.version, rows=rows)
            return Streams(table_id=intent.table_id, ends={**ends, intent.stream: now})

        self._states.change(intent.table, Streams, followed)

    def record_failed(self, table: str, table_id: str, interval: Interval, files: Sequence[FileFact]) -> None:
        """Write down files of an interval that cannot be loaded, each with its defect: one more failed attempt."""
        self._files.append([batchless_event(FileEvent.FAILED, table, table_id, interval, file) for file in files])

    def record_unreachable(self, table: str, table_id: str, interval: Interval, files: Sequence[FileFact]) -> None:
        """Write down files that the storage did not hand over, each with what it said; no attempt is counted."""
        self._files.append([batchless_event(FileEvent.UNREACHABLE, table, table_id, interval, file) for file in files])

    def record_seen(self, table: str, table_id: str, interval: Interval, files: Sequence[FileFact]) -> None:
        """Write down files whose content is loaded, and whose time is another one now."""
        self._files.append([batchless_event(FileEvent.SEEN, table, table_id, interval, file) for file in files])

    def record_replayed(self, table: str, table_id: str, interval: Interval, file: FileFact) -> None:
        """Write down that a person wants a failed file to be tried again."""
        self._files.append([batchless_event(FileEvent.REPLAYED, table, table_id, interval, file)])

    def record_given_up(self, table: str, table_id: str, interval: Interval, file: FileFact) -> None:
        """Write down that a person goes on without a failed file; its `defect` says who, and why."""
        self._files.append([batchless_event(FileEvent.GIVEN_UP, table, table_id, interval, file)])

    def last_committed(self, table: str, table_id: str, stream: str) -> Winner | None:
        """The last batch of the stream that was resolved, by the table's state; the log may hold newer ones."""
        kept = self._states.read(table, Streams)
        end = kept.ends.get(stream) if kept and kept.table_id == table_id else None
        if end and self._is_recorded(end.intent):
            return Winner(end.intent, end.version)
        return self.last_recorded(table, table_id, stream)

    def _is_recorded(self, intent: Intent) -> bool:
        """Whether history has the batch: it is behind the state where it was restored from a backup, or cut."""
        wanted = {"event": [BatchEvent.COMMITTED.value], "token": [intent.token]}
        return bool(self._batches.since(intent.table, "batch_seq", intent.batch_seq, ("token",), **wanted))

    def last_recorded(self, table: str, table_id: str, stream: str, upto: int | None = None) -> Winner | None:
        """The last batch by all that was ever written down, at or below version `upto` of the table if one is given."""
        wanted = ("batch_seq", "version", "intent")
        rows = self._batches.events(table, wanted, table_id=table_id, stream=stream, event=BatchEvent.COMMITTED)
        below = (row for row in rows if upto is None or row["version"] <= upto)
        newest = max(below, key=lambda row: (row["batch_seq"], row["version"]), default=None)
        return recorded_winner(newest) if newest else None

    def closed_before(self, table: str, table_id: str, stream: str, instant: datetime) -> int:
        """The last batch of the stream that was closed before an instant, as all batches below it were; 0 for none."""
        of_stream = {"table_id": table_id, "stream": stream, "event": BatchEvent.CLOSED}
        rows = self._batches.events(table, ("batch_seq", "recorded_at"), **of_stream)
        later = min((row["batch_seq"] for row in rows if row["recorded_at"] >= instant), default=None)
        return max((row["batch_seq"] for row in rows if later is None or row["batch_seq"] < later), default=0)

    def closed(self, winner: Winner) -> RowCounts | None:
        """The row counts of a batch whose secondary writes are done, else None."""
        intent = winner.intent
        kept = self._states.read(intent.table, Streams)
        end = kept.ends.get(intent.stream) if kept else None
        if end and end.rows and end.intent.token == intent.token:
            return end.rows
        of_batch = {"event": [BatchEvent.CLOSED.value], "token": [intent.token]}
        rows = self._batches.since(intent.table, "batch_seq", intent.batch_seq, ("rows",), **of_batch)
        return RowCounts.model_validate_json(rows[-1]["rows"]) if rows else None

    def applied(self, table: str, batches: Mapping[str, int]) -> int | None:
        """The rows that batches (token -> number) have applied together; None where one of them is not closed."""
        first, wanted = min(batches.values(), default=0), {"token": batches.keys(), "event": [BatchEvent.CLOSED.value]}
        events = self._batches.since(table, "batch_seq", first, ("token", "rows"), **wanted)
        rows = {row["token"]: RowCounts.model_validate_json(row["rows"]).applied for row in events}
        return sum(rows.values()) if rows.keys() == batches.keys() else None

    def files_of(self, intent: Intent) -> tuple[FileFact, ...]:
        """The files that an intent was planned to load."""
        return tuple(self._planned(intent.table, [intent.token]))

    def loaded_files(self, table: str, table_id: str) -> LoadedFiles:
        """Every file that a winning attempt loaded into the table; a path once for each content."""
        tokens = self.versions(table, table_id)
        planned = self._files.answers(table, Planned(table_id)).values()
        return loaded_files((one.of({*tokens, NO_TOKEN}) for one in planned), partial(self._loaded, table, tokens))

    def file_events(self, table: str, table_id: str) -> list[dict[str, Any]]:
        """All that `ops.files` says of a table's files, oldest first."""
        return self._files.find(table, table_id=[table_id])

    def versions(self, table: str, table_id: str) -> dict[str, int]:
        """token -> version, for every attempt that became a batch."""
        wanted = ("token", "version")
        rows = self._batches.events(table, wanted, table_id=table_id, event=BatchEvent.COMMITTED)
        return {row["token"]: row["version"] for row in rows}

    def replaced_files(self, table: str, table_id: str, after: int, upto: int) -> tuple[str, ...]:
        """The landing files whose rows were replaced in versions (after, upto] of the table, by path."""
        winners = self.batches(table, table_id, after, upto)
        replacing = [winner.token for winner in winners if winner.intent.sources.replaces_files]
        return tuple(sorted({file.path for file in self._planned(table, replacing)}))

    def intervals(self, table: str, table_id: str, upto: int) -> tuple[datetime, ...]:
        """Start of each interval of which a batch was committed at or before a version of the table, oldest first."""
        intents = [winner.intent for winner in self.batches(table, table_id, -1, upto)]
        # A replay brings single rows to intervals of before.
        return tuple(sorted({intent.interval_start for intent in intents if not intent.sources.replay}))

    def batches(self, table: str, table_id: str, after: int, upto: int | None = None) -> list[Winner]:
        """The batches that made versions (after, upto] of the table, up to the newest one for None, oldest first."""
        rows = self._batches.events(table, ("version", "intent"), table_id=table_id, event=BatchEvent.COMMITTED)
        of_range = [row for row in rows if after < row["version"] and (upto is None or row["version"] <= upto)]
        winners = {winner.token: winner for winner in map(recorded_winner, of_range)}
        return sorted(winners.values(), key=lambda winner: winner.version)

    def records_in(self, table: str, tokens: Collection[str]) -> Counter[datetime]:
        """Start of an interval -> how many records its files hold, of those that batches loaded.

        Of a file that they loaded twice its last content counts.
        """
        of_batches = {"token": tokens, "event": [FileEvent.LOADED]}
        rows = self._files.find(table, ("path", "interval_start", "rows_read"), **of_batches)
        records = Counter[datetime]()
        for row in {row["path"]: row for row in rows}.values():
            records[row["interval_start"]] += row["rows_read"] or 0
        return records

    def failures(self, table: str, table_id: str) -> dict[str, Failure]:
        """path -> failure, for every file that could not be loaded when last tried, and that nobody replayed since."""
        unloaded = self.unloaded(table, table_id)
        return {path: failure for path, failure in unloaded.items() if failure.attempts or failure.given_up}

    def unloaded(self, table: str, table_id: str) -> dict[str, Failure]:
        """path -> failure, for every file that could not be loaded when last tried, replayed ones included."""
        # Few files ever fail, if any: the events of all others are left alone.
        ever_failed = self._files.find(table, ("path",), table_id=[table_id], event=[FileEvent.FAILED])
        paths = {row["path"] for row in ever_failed}
        wanted = ("event", "token", "interval_start", *FACTS)
        events = self._files.find(table, wanted, table_id=[table_id], path=paths) if paths else []
        tokens = self.versions(table, table_id) if paths else {}
        failed: dict[str, Failure] = {}
        for row in events:
            path, before = row["path"], failed.get(row["path"])
            if row["event"] == FileEvent.FAILED:
                failed[path] = _failed_again(before, file_fact(row), row["interval_start"])
            elif row["token"] in tokens:
                failed.pop(path, None)
            elif before and row["event"] == FileEvent.REPLAYED:
                failed[path] = replace(before, attempts=0, given_up=False)
            elif before and row["event"] == FileEvent.GIVEN_UP:
                failed[path] = replace(before, given_up=True, file=file_fact(row))
        return failed

    def _planned(self, table: str, tokens: Collection[str]) -> list[FileFact]:
        """The files that attempts were planned to load, oldest first."""
        return [file_fact(row) for row in self._files.find(table, FACTS, token=tokens, event=[FileEvent.PLANNED])]

    def _loaded(self, table: str, tokens: Collection[str], paths: Collection[str]) -> list[FileFact]:
        """The contents of paths that attempts were planned to load, oldest first."""
        of_paths = {"path": paths, "token": tokens, "event": [FileEvent.PLANNED]}
        return [file_fact(row) for row in self._files.find(table, FACTS, **of_paths)]


def _failed_again(before: Failure | None, file: FileFact, interval_start: datetime) -> Failure:
    """The failure of a file that has failed once more; other content is counted anew."""
    if before is None or before.file.checksum != file.checksum:
        return Failure(file, 1, interval_start)
    return replace(before, file=file, attempts=before.attempts + 1, interval_start=interval_start)

"""The ledger: what each batch was planned to do, from which sources, and which attempts won.

`ops.batches` and `ops.files` are append-only; the state of a batch is the last event of its token. The ledger pairs
tokens with sources; which token won is said by the table's log alone (ADR 0002).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from include.contracts.interval import Interval
from include.contracts.job.report import FileRows, RowCounts
from include.control.events.conditions import Span
from include.control.ledger.events import (
    BATCHES,
    FACTS,
    FILES,
    BatchEvent,
    Failure,
    FileEvent,
    batch_event,
    batchless_event,
    failures_of,
    file_event,
    file_fact,
    loaded_event,
    recorded_winner,
)
from include.control.ledger.loaded_files import LoadedFiles, Planned, PlannedFiles, Winners
from include.control.ledger.measures import Measures, measured, newest_of
from include.control.ledger.ops_table import OpsTable
from include.control.ledger.streams import Streams, advance_streams
from include.control.ledger.table_state import TableStates, failing_without_harm
from include.control.log.batch import FileFact, Intent, Winner
from include.paths import LakehousePaths


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
                self._states.change(known[-1].intent.table, (Streams, partial(advance_streams, known[-1], None)))

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
            now = measured(self._paths.table(winner.intent.table))
            ends = partial(advance_streams, winner, rows)
            self._states.change(winner.intent.table, (Streams, ends), (Measures, lambda kept: newest_of(kept, now)))

    def record_failed(self, table: str, table_id: str, interval: Interval, files: Sequence[FileFact]) -> None:
        """Write down files of an interval that cannot be loaded, each with its defect: one more failed attempt."""
        self._files.append([batchless_event(FileEvent.FAILED, table, table_id, interval, file) for file in files])

    def record_unreachable(self, table: str, table_id: str, interval: Interval, files: Sequence[FileFact]) -> None:
        """Write down files that the storage did not hand over, each with what it said; no attempt is counted."""
        self._files.append([batchless_event(FileEvent.UNREACHABLE, table, table_id, interval, file) for file in files])

    def record_seen(self, table: str, table_id: str, interval: Interval, files: Sequence[FileFact]) -> None:
        """Write down files whose content is loaded, and whose time is another one now."""
        self._files.append([batchless_event(FileEvent.SEEN, table, table_id, interval, file) for file in files])

    def record_touched(self, table: str, table_id: str, interval: Interval, files: Sequence[FileFact]) -> None:
        """Write down files that were given up, and whose time is another one now; their content has failed before."""
        self._files.append([batchless_event(FileEvent.TOUCHED, table, table_id, interval, file) for file in files])

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
        return bool(self._batches.find(intent.table, ("token",), **_of(BatchEvent.COMMITTED, intent)))

    def last_recorded(self, table: str, table_id: str, stream: str, upto: int | None = None) -> Winner | None:
        """The last batch by all that was ever written down, at or below version `upto` of the table if one is given."""
        of_stream = _of_stream(BatchEvent.COMMITTED, table_id, stream)
        rows = self._batches.downward(table, "batch_seq", ("version", "intent"), **of_stream)
        below = (row for row in rows if upto is None or row["version"] <= upto)
        _, newest = next(groupby(below, itemgetter("batch_seq")), (None, ()))
        return max(map(recorded_winner, newest), key=lambda winner: winner.version, default=None)

    def newest_number(self, table: str, table_id: str, upto: int) -> int:
        """The greatest number of a batch, of whatever stream, at or below a version of the table; 0 for none."""
        event, columns = [BatchEvent.COMMITTED], ("version",)
        rows = self._batches.downward(table, "batch_seq", columns, table_id=[table_id], event=event)
        return next((row["batch_seq"] for row in rows if row["version"] <= upto), 0)

    def closed_before(self, table: str, table_id: str, stream: str, instant: datetime) -> int:
        """The last batch of the stream that was closed before an instant, as all batches below it were; 0 for none."""
        of_stream = _of_stream(BatchEvent.CLOSED, table_id, stream)
        since = self._batches.find(table, ("batch_seq",), **of_stream, recorded_at=Span(least=instant))
        upto = min((row["batch_seq"] - 1 for row in since), default=None)
        before = self._batches.downward(table, "batch_seq", ("batch_seq",), upto, **of_stream)
        return next((row["batch_seq"] for row in before), 0)

    def closed_rows(self, winner: Winner) -> RowCounts | None:
        """The row counts of a batch whose secondary writes are done, else None."""
        intent = winner.intent
        kept = self._states.read(intent.table, Streams)
        end = kept.ends.get(intent.stream) if kept else None
        if end and end.rows and end.intent.token == intent.token:
            return end.rows
        rows = self._batches.find(intent.table, ("rows",), **_of(BatchEvent.CLOSED, intent))
        return RowCounts.model_validate_json(rows[-1]["rows"]) if rows else None

    def applied_rows(self, table: str, batches: Mapping[str, int]) -> int | None:
        """The rows that batches (token -> number) have applied together; None where one of them is not closed."""
        wanted = {"event": [BatchEvent.CLOSED], "token": batches.keys(), "batch_seq": set(batches.values())}
        events = self._batches.find(table, ("token", "rows"), **wanted)
        rows = {row["token"]: RowCounts.model_validate_json(row["rows"]).applied for row in events}
        return sum(rows.values()) if rows.keys() == batches.keys() else None

    def files_of(self, intent: Intent) -> tuple[FileFact, ...]:
        """The files that an intent was planned to load."""
        return tuple(self._planned(intent.table, [intent]))

    def loaded_files(self, table: str, table_id: str) -> LoadedFiles:
        """Every file that a winning attempt loaded into the table; a path once for each content."""

        def planned(paths: Collection[str]) -> Collection[PlannedFiles]:
            return self._files.answers(table, Planned(table_id), path=paths).values()

        won = partial(self._won, table, table_id)
        return LoadedFiles(planned, won, partial(self._loaded, table, table_id))

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
        replacing = [winner.intent for winner in winners if winner.intent.sources.replaces_files]
        return tuple(sorted({file.path for file in self._planned(table, replacing)}))

    def intervals(self, table: str, table_id: str, upto: int) -> tuple[datetime, ...]:
        """Start of each interval of which a batch was committed at or before a version of the table, oldest first."""
        intents = [winner.intent for winner in self.batches(table, table_id, -1, upto)]
        # A replay brings single rows to intervals of before.
        return tuple(sorted({intent.interval_start for intent in intents if not intent.sources.replay}))

    def batches(self, table: str, table_id: str, after: int, upto: int | None = None) -> list[Winner]:
        """The batches that made versions (after, upto] of the table, up to the newest one for None, oldest first."""
        span = Span(after + 1, upto)
        return self._winners(table, table_id, version=span)

    def batches_of(self, table: str, table_id: str, starts: Collection[datetime]) -> list[Winner]:
        """The batches that files of some intervals made, oldest first; no replay, which brings single rows to them."""
        found = self._winners(table, table_id, interval_start=starts) if starts else []
        return [winner for winner in found if not winner.intent.sources.replay]

    def _winners(self, table: str, table_id: str, **wanted: Collection[datetime] | Span) -> list[Winner]:
        event, columns = [BatchEvent.COMMITTED], ("version", "intent")
        rows = self._batches.find(table, columns, table_id=[table_id], event=event, **wanted)
        winners = {winner.token: winner for winner in map(recorded_winner, rows)}
        return sorted(winners.values(), key=lambda winner: winner.version)

    def records_in(self, table: str, batches: Collection[Winner]) -> Counter[datetime]:
        """Start of an interval -> how many records its files hold, of those that batches loaded.

        Of a file that they loaded twice its last content counts.
        """
        wanted = ("path", "interval_start", "rows_read")
        rows = self._files.find(table, wanted, **_of(FileEvent.LOADED, *(one.intent for one in batches)))
        records = Counter[datetime]()
        for row in {row["path"]: row for row in rows}.values():
            records[row["interval_start"]] += row["rows_read"] or 0
        return records

    def failures(self, table: str, table_id: str, **among: Collection[Any]) -> dict[str, Failure]:
        """path -> failure, for every file that could not be loaded when last tried, and that nobody replayed since.

        Args:
            table: the table.
            table_id: Delta's id of it.
            among: the files that matter: `path` of them, or `interval_start` of intervals in which they failed.
        """
        unloaded = self.failed_files(table, table_id, **among)
        return {path: failure for path, failure in unloaded.items() if failure.attempts or failure.given_up}

    def failed_files(self, table: str, table_id: str, **among: Collection[Any]) -> dict[str, Failure]:
        """path -> failure, for every file that could not be loaded when last tried, replayed ones included."""
        # Few files ever fail, if any: the events of all others are left alone.
        ever_failed = self._files.find(table, ("path",), table_id=[table_id], event=[FileEvent.FAILED], **among)
        paths = {row["path"] for row in ever_failed}
        wanted = ("event", "token", "batch_seq", "interval_start", *FACTS)
        events = self._files.find(table, wanted, table_id=[table_id], path=paths) if paths else []
        tokens = self._won(table, table_id, {row["token"]: row["batch_seq"] for row in events})
        return failures_of(events, tokens)

    def _planned(self, table: str, intents: Collection[Intent]) -> list[FileFact]:
        """The files that attempts were planned to load, oldest first."""
        found = self._files.find(table, FACTS, **_of(FileEvent.PLANNED, *intents)) if intents else []
        return [file_fact(row) for row in found]

    def _loaded(self, table: str, table_id: str, paths: Collection[str]) -> list[FileFact]:
        """The contents of paths that winning attempts were planned to load, oldest first."""
        wanted = ("token", "batch_seq", *FACTS)
        rows = self._files.find(table, wanted, table_id=[table_id], path=paths, event=[FileEvent.PLANNED])
        tokens = self._won(table, table_id, {row["token"]: row["batch_seq"] for row in rows})
        return [file_fact(row) for row in rows if row["token"] in tokens]

    def _won(self, table: str, table_id: str, attempts: Mapping[str, int | None]) -> set[str]:
        """Those of some attempts (token -> number) that became batches."""
        numbers = {number for number in attempts.values() if number is not None}
        question, event = Winners(table_id), [BatchEvent.COMMITTED]
        found = self._batches.answers(table, question, batch_seq=numbers, event=event) if numbers else {}
        return {token for token in attempts if any(token in winners for winners in found.values())}


def _of(event: BatchEvent | FileEvent, *intents: Intent) -> dict[str, Collection[Any]]:
    """What events of a kind hold that are about some attempts."""
    numbers, tokens = {intent.batch_seq for intent in intents}, {intent.token for intent in intents}
    return {"event": [event], "batch_seq": numbers, "token": tokens}


def _of_stream(event: BatchEvent, table_id: str, stream: str) -> dict[str, Collection[Any]]:
    """What events of a kind hold that are about batches of a stream."""
    return {"event": [event], "table_id": [table_id], "stream": [stream]}

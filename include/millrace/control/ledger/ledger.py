"""The ledger: the plan of each batch, its sources, and the attempts that won.

`ops.batches` and `ops.files` are append-only; the state of a batch is the last event of its token. The ledger pairs
tokens with sources; only the log of the table decides which token won (ADR 0002).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millrace.clock import utc_now
from millrace.contracts.interval import Interval
from millrace.contracts.job.report import FileRows, RowCounts
from millrace.control.events.conditions import Span
from millrace.control.ledger.batch_history import BatchHistory
from millrace.control.ledger.events import (
    BATCHES,
    FACTS,
    FILES,
    BatchEvent,
    Failure,
    FileEvent,
    batch_event,
    batchless_event,
    erased_event,
    failures_of,
    file_event,
    file_fact,
    loaded_event,
    recorded_winner,
)
from millrace.control.ledger.loaded_files import LoadedFiles, planned_files_query, undone_query, winners_query
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.states.failed_files import FailedFiles, failed_files
from millrace.control.ledger.states.measures import Measures, measure, newer_measures
from millrace.control.ledger.states.recent_batches import RecentBatches, closed_batch
from millrace.control.ledger.states.streams import Streams, advance_streams
from millrace.control.ledger.states.table_state import TableStates, tolerate_state_errors
from millrace.control.ledger.states.totals import Totals
from millrace.control.ledger.states.waiting_rows import WaitingChange, WaitingRows
from millrace.control.log.batch import FileFact, Intent, Winner
from millrace.errors import first_line
from millrace.paths import LakehousePaths

_CONTENTS = [FileEvent.PLANNED, FileEvent.REWRITTEN]
"""The events with the content of a file that counts as loaded if its attempt has won."""


class Ledger:
    """Reads and writes `ops.batches` and `ops.files` of one lakehouse.

    Attributes:
        paths: the folders of the lakehouse.
        history: summaries of closed batches.
        attempts: the attempts without a commit.
    """

    def __init__(self, paths: LakehousePaths) -> None:
        self.paths = paths
        self._states = TableStates(paths)
        self._batches = OpsTable.of(paths, "batches", BATCHES)
        self._files = OpsTable.of(paths, "files", FILES)
        self.history = BatchHistory(self._batches)
        self.attempts = Attempts(self._batches, self._files)
        self._last_recorded: tuple[str, tuple[FileFact, ...]] = ("", ())
        self._intent_at: dict[str, datetime] = {}

    def record_intent(self, intent: Intent, files: Sequence[FileFact] = ()) -> None:
        """Record an intent with its sources; the files come first, since an intent implies that they are recorded."""
        self._files.append([file_event(FileEvent.PLANNED, intent, file) for file in files])
        at = utc_now()
        self._batches.append([{**batch_event(BatchEvent.INTENT, intent), "recorded_at": at}])
        self._last_recorded, self._intent_at = (intent.token, tuple(files)), {intent.token: at}

    def record_committed(self, winners: Iterable[Winner]) -> None:
        """Record the attempts of one table that the log let win, oldest first."""
        batches = list(winners)
        self._batches.append([batch_event(BatchEvent.COMMITTED, batch.intent, batch.version) for batch in batches])
        if batches:
            with tolerate_state_errors(batches[-1].intent.table):
                self._states.change(batches[-1].intent.table, (Streams, partial(advance_streams, batches[-1], None)))

    def record_closed(
        self,
        winner: Winner,
        rows: RowCounts,
        rows_of_file: Mapping[str, FileRows] = {},
        *,
        waiting: WaitingChange | None = None,
    ) -> None:
        """Record that the secondary writes of a batch are complete, with its row counts.

        Args:
            winner: the batch.
            rows: its row counts.
            rows_of_file: in bronze, path -> the row counts of the file.
            waiting: how the batch changes the number of rows that wait in quarantine; None if it is not known.
        """
        at, intent, history = utc_now(), winner.intent, self.history
        files = [file for file in self.files_of(intent) if file.path in rows_of_file] if rows_of_file else []
        self._files.append([loaded_event(winner, file, rows_of_file[file.path]) for file in files])
        event = batch_event(BatchEvent.CLOSED, intent, winner.version)
        if waiting.changes if waiting else rows.quarantined:
            with tolerate_state_errors(intent.table):  # Whoever dies after the event leaves no wrong number.
                self._states.change(intent.table, (WaitingRows, waiting.begin if waiting else lambda _: None))
        self._batches.append([{**event, "rows": rows.model_dump_json(), "recorded_at": at}])
        with tolerate_state_errors(intent.table):
            now = measure(self.paths.table(intent.table))
            self._states.change(
                intent.table,
                (Streams, partial(advance_streams, winner, rows)),
                (Measures, lambda measures: newer_measures(measures, now)),
                (RecentBatches, partial(history.recent_after, closed_batch(winner, rows, at), intent)),
                (Totals, partial(history.totals_after, winner, rows, self._intent_at.get(intent.token), at)),
                (FailedFiles, partial(self._failed_after, intent)),
                (WaitingRows, waiting.end if waiting else lambda _: None),
            )

    def record_rewound(self, restore: Winner, undone: Iterable[Winner], redone: Iterable[Winner]) -> None:
        """Record which batches a restore has taken out of the table, and which it has put back."""
        is_for_good = restore.intent.sources.no_reload
        kind = BatchEvent.UNDONE_FOR_GOOD if is_for_good else BatchEvent.UNDONE
        events = [batch_event(kind, batch.intent, restore.version) for batch in undone]
        events += [batch_event(BatchEvent.REDONE, batch.intent, restore.version) for batch in redone]
        self._batches.append(events)

    def undone(self, table: str, table_id: str) -> dict[str, BatchEvent]:
        """Return the batches whose rows a restore took out of the table: token -> `undone` or `undone_for_good`."""
        rows = [row for of_file in self._batches.results(table, undone_query(table_id)) for row in of_file.to_pylist()]
        last = {row["token"]: BatchEvent(row["event"]) for row in sorted(rows, key=itemgetter("version"))}
        return {token: event for token, event in last.items() if event is not BatchEvent.REDONE}

    def _failed_after(self, intent: Intent, stored: FailedFiles | None) -> FailedFiles | None:
        """Return the failed files after a batch, which may have loaded some of them."""
        if not intent.sources.files or (stored and stored.table_id == intent.table_id and not stored.attempts):
            return stored
        return failed_files(intent.table_id, self.failures(intent.table, intent.table_id))

    def record_files(
        self,
        event: FileEvent,
        table: str,
        table_id: str,
        interval: Interval,
        files: Iterable[FileFact],
        died: Intent | None = None,
    ) -> None:
        """Record an event of files of an interval that belongs to no batch; the `defect` of a file is the reason.

        The files failed because of the attempt `died`, if there is one.
        """
        events = [batchless_event(event, table, table_id, interval, file, died) for file in files]
        if not events or event not in (FileEvent.FAILED, FileEvent.GIVEN_UP, FileEvent.REPLAYED):
            return self._files.append(events)
        with tolerate_state_errors(table):  # Whoever dies after the event leaves no wrong number.
            self._states.change(table, (FailedFiles, lambda _: None))
        self._files.append(events)
        with tolerate_state_errors(table):
            failed = failed_files(table_id, self.failures(table, table_id))
            self._states.change(table, (FailedFiles, lambda _: failed))

    def record_erased(
        self, event: FileEvent, table: str, table_id: str, before: FileFact, after: FileFact, reason: str
    ) -> bool:
        """Record what an erasure does to a file, and why, for the batch that loaded this content of it.

        Args:
            event: `rewritten` or `deleted`.
            table: the table.
            table_id: its Delta table id.
            before: the file as it is, with its checksum.
            after: the file as it will be.
            reason: why.

        Returns:
            Whether a batch has loaded the file as it is; if not, nothing is recorded.
        """
        rows = self._files.find(table, table_id=[table_id], path=[before.path], event=_CONTENTS)
        won = self._won(table, table_id, {row["token"]: row["batch_seq"] for row in rows})
        loaded = [row for row in rows if row["token"] in won and row["checksum"] == before.checksum]
        if loaded:
            self._files.append([erased_event(event, loaded[-1], after, reason)])
        return bool(loaded)

    def last_committed(self, table: str, table_id: str, stream: str) -> Winner | None:
        """Return the last resolved batch of the stream, by the table's state; the log may hold newer batches."""
        state = self._states.read(table, Streams)
        end = state.ends.get(stream) if state and state.table_id == table_id else None
        # A ledger that was restored from a backup may lack the batch of the state.
        if end and self._batches.find(table, ("token",), **_of(BatchEvent.COMMITTED, end.intent)):
            return Winner(end.intent, end.version)
        return self.last_recorded(table, table_id, stream)

    def batch_of(self, table: str, token: str) -> Winner | None:
        """Return the batch with a token; None if no attempt with it has become a batch."""
        rows = self._batches.find(table, ("version", "intent"), event=[BatchEvent.COMMITTED], token=[token])
        return recorded_winner(rows[-1]) if rows else None

    def last_recorded(self, table: str, table_id: str, stream: str, upto: int | None = None) -> Winner | None:
        """Return the last batch of the stream by all events; with `upto`, the last one up to this table version."""
        of_stream = _of_stream(BatchEvent.COMMITTED, table_id, stream)
        rows = self._batches.descending(table, "batch_seq", ("version", "intent"), **of_stream)
        below = (row for row in rows if upto is None or row["version"] <= upto)
        _, newest = next(groupby(below, itemgetter("batch_seq")), (None, ()))
        return max(map(recorded_winner, newest), key=lambda winner: winner.version, default=None)

    def newest_number(self, table: str, table_id: str, upto: int) -> int:
        """Return the highest batch number of any stream up to a table version; 0 if there is no batch."""
        event, columns = [BatchEvent.COMMITTED], ("version",)
        rows = self._batches.descending(table, "batch_seq", columns, table_id=[table_id], event=event)
        return next((row["batch_seq"] for row in rows if row["version"] <= upto), 0)

    def closed_rows(self, winner: Winner) -> RowCounts | None:
        """Return the row counts of a batch whose secondary writes are complete; otherwise None."""
        intent = winner.intent
        state = self._states.read(intent.table, Streams)
        end = state.ends.get(intent.stream) if state else None
        if end and end.rows and end.intent.token == intent.token:
            return end.rows
        rows = self._batches.find(intent.table, ("rows",), **_of(BatchEvent.CLOSED, intent))
        return RowCounts.model_validate_json(rows[-1]["rows"]) if rows else None

    def files_of(self, intent: Intent) -> tuple[FileFact, ...]:
        """Return the files of an intent."""
        token, files = self._last_recorded
        return files if intent.token == token else tuple(self._planned(intent.table, [intent]))

    def loaded_files(self, table: str, table_id: str) -> LoadedFiles:
        """Return the files that winning attempts loaded into the table; a path counts once for each content."""
        query = planned_files_query(table_id)
        return LoadedFiles(
            read_planned=lambda paths: self._files.results(table, query, path=paths),
            read_winners=partial(self._won, table, table_id),
            read_undone=partial(self._loadable_again, table, table_id),
            facts=partial(self._loaded, table, table_id),
        )

    def file_events(self, table: str, table_id: str, **among: Collection[Any]) -> list[dict[str, Any]]:
        """Return the events of a table's files, oldest first; `among` limits the files, by `path`."""
        return self._files.find(table, (), table_id=[table_id], **among)

    def newest_files(self, table: str, table_id: str, upto: datetime | None, **among: Any) -> Iterator[dict[str, Any]]:
        """Yield `path` and `recorded_at` of the events of a table's files, newest first; `among` limits the events."""
        return self._files.descending(table, "recorded_at", ("path",), upto, table_id=[table_id], **among)

    def versions(self, table: str, table_id: str, **among: Collection[Any]) -> dict[str, int]:
        """Return the version of every attempt that became a batch, `among` some `batch_seq`: token -> version.

        Batches that a restore has undone are left out.
        """
        columns = ("token", "version")
        rows = self._batches.find(table, columns, table_id=[table_id], event=[BatchEvent.COMMITTED], **among)
        undone = self.undone(table, table_id)
        return {row["token"]: row["version"] for row in rows if row["token"] not in undone}

    def replaced_files(self, table: str, table_id: str, after: int, upto: int) -> tuple[str, ...]:
        """Return the paths of the landing files whose rows were replaced in versions (after, upto], sorted.

        Those of batches that a restore has undone or redone in these versions are among them.
        """
        winners = self.batches(table, table_id, after, upto, with_undone=True)
        replacing = [winner.intent for winner in winners if winner.intent.sources.replaces_files]
        if any(winner.intent.sources.restores is not None for winner in winners):
            undone, redone = self.rewound(table, table_id, after, upto)
            replacing += [winner.intent for winner in (*undone, *redone) if winner.intent.sources.files]
        return tuple(sorted({file.path for file in self._planned(table, replacing)}))

    def intervals(self, table: str, table_id: str, upto: int) -> tuple[datetime, ...]:
        """Return the start of each interval with a batch up to a table version, oldest first."""
        intents = [winner.intent for winner in self.batches(table, table_id, -1, upto)]
        return tuple(sorted({intent.interval_start for intent in intents if intent.sources.adds_deliveries}))

    def batches(
        self, table: str, table_id: str, after: int, upto: int | None = None, *, with_undone: bool = False
    ) -> list[Winner]:
        """Return the batches of versions (after, upto], oldest first; `upto` None means the newest version.

        Batches that a restore has undone since are left out, unless they are asked for.
        """
        batches = self._winners(table, table_id, version=Span(after + 1, upto))
        return batches if with_undone else self._in_force(table, table_id, batches)

    def rewound(self, table: str, table_id: str, before: int, after: int) -> tuple[list[Winner], list[Winner]]:
        """Return the batches whose rows version `before` has and version `after` has not, and those the other way.

        The versions may be in any order.
        """
        least = min(before, after)
        while True:
            batches = self.batches(table, table_id, least, max(before, after), with_undone=True)
            targets = [batch.intent.sources.restores for batch in batches]
            earlier = min((target for target in targets if target is not None), default=least)
            if earlier >= least:
                break
            least = earlier
        # Version -> the batches after `least` whose rows it has, by token; only of the versions that matter.
        having, of_version = dict[int, dict[str, Winner]](), dict[str, Winner]()
        needed = sorted({before, after, *(target for target in targets if target is not None)}, reverse=True)
        for batch in (*batches, None):
            while needed and (batch is None or needed[-1] < batch.version):
                having[needed.pop()] = dict(of_version)
            if batch and (target := batch.intent.sources.restores) is not None:
                of_version = dict(having[target])
            elif batch:
                of_version[batch.token] = batch
        first, second = having[before], having[after]
        gone = [batch for token, batch in first.items() if token not in second]
        return gone, [batch for token, batch in second.items() if token not in first]

    def batches_of(self, table: str, table_id: str, starts: Collection[datetime]) -> list[Winner]:
        """Return the batches of some intervals, oldest first, without those that only add or delete single rows.

        Batches that a restore has undone are left out.
        """
        winners = self._winners(table, table_id, interval_start=starts) if starts else []
        in_force = self._in_force(table, table_id, winners)
        return [winner for winner in in_force if winner.intent.sources.adds_deliveries]

    def _in_force(self, table: str, table_id: str, batches: list[Winner]) -> list[Winner]:
        undone = self.undone(table, table_id)
        return [batch for batch in batches if batch.token not in undone] if undone else batches

    def _loadable_again(self, table: str, table_id: str) -> set[str]:
        undone = self.undone(table, table_id).items()
        return {token for token, event in undone if event is BatchEvent.UNDONE}

    def _winners(self, table: str, table_id: str, **conditions: Collection[datetime] | Span) -> list[Winner]:
        event, columns = [BatchEvent.COMMITTED], ("version", "intent")
        rows = self._batches.find(table, columns, table_id=[table_id], event=event, **conditions)
        winners = {winner.token: winner for winner in map(recorded_winner, rows)}
        return sorted(winners.values(), key=lambda winner: winner.version)

    def records_in(self, table: str, batches: Collection[Winner]) -> Counter[datetime]:
        """Return start of an interval -> records in the files that batches loaded, each with its last content."""
        columns = ("path", "interval_start", "rows_read")
        rows = self._files.find(table, columns, **_of(FileEvent.LOADED, *(batch.intent for batch in batches)))
        records = Counter[datetime]()
        for row in {row["path"]: row for row in rows}.values():
            records[row["interval_start"]] += row["rows_read"] or 0
        return records

    def failures(self, table: str, table_id: str, **among: Collection[Any]) -> dict[str, Failure]:
        """Return the `failed_files` without those to be replayed; `among` may limit `path` and `interval_start`."""
        failed = self.failed_files(table, table_id, **among)
        return {path: failure for path, failure in failed.items() if failure.attempts or failure.given_up}

    def failed_files(self, table: str, table_id: str, **among: Collection[Any]) -> dict[str, Failure]:
        """Return the files that the last attempt could not load, also those to be replayed: path -> failure."""
        # Few files ever fail: the events of all other files are not read.
        ever_failed = self._files.find(table, ("path",), table_id=[table_id], event=[FileEvent.FAILED], **among)
        paths = {row["path"] for row in ever_failed}
        columns = ("recorded_at", "event", "token", "batch_seq", "interval_start", *FACTS)
        events = self._files.find(table, columns, table_id=[table_id], path=paths) if paths else []
        tokens = self._won(table, table_id, {row["token"]: row["batch_seq"] for row in events})
        return failures_of(events, tokens)

    def _planned(self, table: str, intents: Collection[Intent]) -> list[FileFact]:
        """Return the files of some intents, oldest first."""
        rows = self._files.find(table, FACTS, **_of(FileEvent.PLANNED, *intents)) if intents else []
        return [file_fact(row) for row in rows]

    def _loaded(self, table: str, table_id: str, paths: Collection[str]) -> list[FileFact]:
        """Return the files with these paths that winning attempts loaded, oldest first."""
        columns = ("token", "batch_seq", *FACTS)
        rows = self._files.find(table, columns, table_id=[table_id], path=paths, event=_CONTENTS)
        tokens = self._won(table, table_id, {row["token"]: row["batch_seq"] for row in rows})
        tokens -= self._loadable_again(table, table_id)
        return [file_fact(row) for row in rows if row["token"] in tokens]

    def _won(self, table: str, table_id: str, attempts: Mapping[str, int | None]) -> set[str]:
        """Return the tokens of those attempts (token -> number) that became batches."""
        numbers = {number for number in attempts.values() if number is not None}
        found = self._batches.results(table, winners_query(table_id), batch_seq=numbers) if numbers else []
        wanted, tokens = pa.array(list(attempts), pa.string()), set[str]()
        for winners in found:
            tokens.update(winners["token"].filter(pc.is_in(winners["token"], wanted)).to_pylist())
        return tokens


def _of(event: BatchEvent | FileEvent, *intents: Intent) -> dict[str, Collection[Any]]:
    """Return the conditions for the events of one kind about some attempts."""
    numbers, tokens = {intent.batch_seq for intent in intents}, {intent.token for intent in intents}
    return {"event": [event], "batch_seq": numbers, "token": tokens}


def _of_stream(event: BatchEvent, table_id: str, stream: str) -> dict[str, Collection[Any]]:
    """Return the conditions for the events of one kind about the batches of a stream."""
    return {"event": [event], "table_id": [table_id], "stream": [stream]}


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeadAttempt:
    """An attempt whose driver, or whose Spark, died between its intent and its commit.

    Attributes:
        intent: what it was about to commit.
        is_counted: whether its death counts as a failure of the file already; only the death of an attempt that loaded
            one file alone ever does.
    """

    intent: Intent
    is_counted: bool

    @property
    def files(self) -> int:
        """The number of files that it loaded together."""
        return self.intent.sources.files


class Attempts:
    """Reads and writes the events of attempts that came to no end, in `ops.batches` and `ops.files`."""

    def __init__(self, batches: OpsTable, files: OpsTable) -> None:
        self._batches = batches
        self._files = files

    @contextmanager
    def outlived(self, intent: Intent, is_death: Callable[[Exception], bool]) -> Iterator[None]:
        """Record that an attempt to load files has failed, if the context ends with an error that is no death.

        Without that event, the next run takes the attempt for dead.
        """
        try:
            yield
        except Exception as error:
            if intent.sources.files and not is_death(error):
                self._record_failure(self._batches, [batch_event(BatchEvent.FAILED, intent)])
            raise

    @contextmanager
    def closing(self, intent: Intent, alone: FileFact | None, is_death: Callable[[Exception], bool]) -> Iterator[None]:
        """Record that records of a committed batch are read again to close it; and if the run lives on, that it does.

        Args:
            intent: the batch; its driver died after the commit.
            alone: the file that is read, without the others of the batch; None if all are read.
            is_death: whether an error is one of a Spark that died.
        """
        events = self._files if alone else self._batches

        def event(kind: str) -> list[dict[str, Any]]:
            return [file_event(FileEvent(kind), intent, alone) if alone else batch_event(BatchEvent(kind), intent)]

        events.append(event(FileEvent.CLOSING))
        try:
            yield
        except Exception as error:
            if not is_death(error):
                self._record_failure(events, event(FileEvent.OUTLIVED))
            raise
        events.append(event(FileEvent.OUTLIVED))

    def _record_failure(self, events: OpsTable, rows: list[dict[str, Any]]) -> None:
        try:
            events.append(rows)
        except Exception as error:  # noqa: BLE001  must not hide the error of the attempt, such as a full disk
            log.warning("%s: the next run takes this attempt for dead: %s", rows[0]["table"], first_line(error))

    def deaths_in_closing(self, intent: Intent) -> tuple[int, Counter[str]]:
        """Return how many runs died while they read a batch again to close it: all of it, and path -> a file alone."""
        of_batch: dict[str, list[Any]] = {"token": [intent.token], "batch_seq": [intent.batch_seq]}
        deaths, begun = Counter[str](), Counter({FileEvent.CLOSING.value: 1, FileEvent.OUTLIVED.value: -1})
        whole = self._batches.find(intent.table, ("event",), event=begun.keys(), **of_batch)
        for row in self._files.find(intent.table, ("event", "path"), event=begun.keys(), **of_batch):
            deaths[row["path"]] += begun[row["event"]]
        return sum(begun[row["event"]] for row in whole), deaths

    def dead(self, table: str, table_id: str, attempts: Mapping[str, Mapping[str, int]]) -> dict[str, DeadAttempt]:
        """Return path -> its last dead attempt, for paths that have one; an attempt without an intent wrote nothing.

        A later attempt that has failed says nothing about the file: no server may have answered.

        Args:
            table: the table.
            table_id: its Delta table id.
            attempts: path -> token and number of its attempts that did not win, oldest first.
        """
        if not attempts:
            return {}
        every = {token: number for of_file in attempts.values() for token, number in of_file.items()}
        of_attempts = {"table_id": [table_id], "token": every.keys(), "batch_seq": {*every.values()}}
        events = self._batches.find(table, ("event", "token", "intent"), **of_attempts)
        failed = {row["token"] for row in events if row["event"] == BatchEvent.FAILED}
        intents = {
            row["token"]: Intent.model_validate_json(row["intent"])
            for row in events
            if row["event"] == BatchEvent.INTENT and row["token"] not in failed
        }
        counted = set[str]()
        if any(intent.sources.files == 1 for intent in intents.values()):
            counts = self._files.find(table, ("token",), event=[FileEvent.FAILED], **of_attempts)
            counted = {row["token"] for row in counts}
        last = {path: token for path, of_file in attempts.items() for token in of_file if token in intents}
        return {path: DeadAttempt(intents[token], token in counted) for path, token in last.items()}

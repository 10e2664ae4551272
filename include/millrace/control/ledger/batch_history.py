"""The closed batches of a table, by the events of `ops.batches`, and the parts of its state that follow from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from millrace.contracts.job.report import RowCounts
from millrace.control.events.conditions import Span
from millrace.control.ledger.events import BatchEvent, recorded_winner
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.states.recent_batches import (
    MOST_BATCHES,
    RecentBatch,
    RecentBatches,
    closed_batch,
    newest_batches,
)
from millrace.control.ledger.states.totals import Totals, add_batch
from millrace.control.log.batch import ONE_STREAM, Intent, Winner


class BatchHistory:
    """Summarizes closed batches: from a part of the state where it has them, otherwise from the events.

    Args:
        batches: `ops.batches`.
    """

    def __init__(self, batches: OpsTable) -> None:
        self._batches = batches

    def closed(self, table: str, table_id: str, upto: int | None = None) -> Iterator[RecentBatch]:
        """Yield the closed batches of the table from version `upto` downward; read only as many as the caller takes."""
        columns, closed = ("intent", "rows", "recorded_at"), [BatchEvent.CLOSED]
        events = self._batches.descending(table, "version", columns, upto, event=closed, table_id=[table_id])
        for _, closes in groupby(events, itemgetter("version")):
            row = next(closes)  # the last close of a batch that was closed twice
            yield closed_batch(recorded_winner(row), RowCounts.model_validate_json(row["rows"]), row["recorded_at"])

    def of_intervals(self, table: str, table_id: str, starts: Collection[datetime]) -> list[RecentBatch]:
        """Return the closed batches of the intervals with these starts, in the order of their versions."""
        return self._closed(table, table_id, interval_start=starts)

    def of_run(self, table: str, table_id: str, run_id: str, recorded: Span) -> list[RecentBatch]:
        """Return the closed batches of a run, in the order of their versions.

        Args:
            table: the table.
            table_id: its id.
            run_id: the run.
            recorded: when they were closed, so that little history is read.
        """
        return self._closed(table, table_id, run_id=[run_id], recorded_at=recorded)

    def closed_before(self, table: str, table_id: str, stream: str, instant: datetime) -> int:
        """Return the last batch that, like all earlier batches, was closed before an instant; 0 if there is none."""
        of_stream: dict[str, Collection[Any]] = {
            "event": [BatchEvent.CLOSED],
            "table_id": [table_id],
            "stream": [stream],
        }
        since = self._batches.find(table, ("batch_seq",), **of_stream, recorded_at=Span(least=instant))
        upto = min((row["batch_seq"] - 1 for row in since), default=None)
        before = self._batches.descending(table, "batch_seq", ("batch_seq",), upto, **of_stream)
        return next((row["batch_seq"] for row in before), 0)

    def applied_rows(self, table: str, batches: Mapping[str, int]) -> int | None:
        """Return the total of the rows that batches (token -> number) applied; None if one of them is not closed."""
        conditions = {"event": [BatchEvent.CLOSED], "token": batches.keys(), "batch_seq": set(batches.values())}
        events = self._batches.find(table, ("token", "rows"), **conditions)
        rows = {row["token"]: RowCounts.model_validate_json(row["rows"]).applied for row in events}
        return sum(rows.values()) if rows.keys() == batches.keys() else None

    def _closed(self, table: str, table_id: str, **where: Collection[Any] | Span) -> list[RecentBatch]:
        """Return the closed batches that meet conditions, in the order of their versions."""
        columns, closed = ("token", "version", "intent", "rows", "recorded_at"), [BatchEvent.CLOSED]
        rows = self._batches.find(table, columns, event=closed, table_id=[table_id], **where)
        # Of a batch that was closed twice, the last close counts.
        closes = sorted({row["token"]: row for row in rows}.values(), key=itemgetter("version"))
        return [
            closed_batch(recorded_winner(row), RowCounts.model_validate_json(row["rows"]), row["recorded_at"])
            for row in closes
        ]

    def last_rebuild(self, table: str, table_id: str, above: int = 0) -> Winner | None:
        """Return the last batch, among those with a higher number than `above`, that a rebuild or its undo has made."""
        event, numbers = [BatchEvent.COMMITTED], Span(above + 1)
        rows = self._batches.descending(
            table, "version", ("intent",), event=event, table_id=[table_id], batch_seq=numbers
        )
        return next((winner for winner in map(recorded_winner, rows) if winner.intent.sources.rebuild), None)

    def numbered(self, table: str, numbers: Collection[int]) -> dict[int, Winner]:
        """Return the batches with these numbers under any id of the table, without those of staged rebuilds."""
        columns, event = ("version", "intent", "batch_seq"), [BatchEvent.COMMITTED]
        rows = self._batches.find(table, columns, event=event, batch_seq=numbers, stream=[ONE_STREAM])
        return {row["batch_seq"]: recorded_winner(row) for row in rows}

    def seconds(self, table: str, batches: Collection[RecentBatch]) -> list[float]:
        """Return the seconds from the intent of each of these batches to its close."""
        numbers, tokens = {batch.batch_seq for batch in batches}, {batch.token for batch in batches}
        started = self._started(table, batch_seq=numbers, token=tokens) if batches else {}
        return [_seconds(started[batch.token], batch.at) for batch in batches if batch.token in started]

    def recent(self, table: str, table_id: str) -> RecentBatches:
        """Return the newest closed batches of the table, from the events."""
        return newest_batches(table_id, islice(self.closed(table, table_id), MOST_BATCHES))

    def recent_after(self, batch: RecentBatch, intent: Intent, stored: RecentBatches | None) -> RecentBatches:
        """Return the newest batches after a close; from the events if the state lacks them, or a batch before it."""
        of_stream = (each.batch_seq for each in stored.batches if each.stream == batch.stream) if stored else ()
        is_gap = batch.batch_seq > max(of_stream, default=0) + 1
        if stored is None or stored.table_id != intent.table_id or is_gap:
            stored = self.recent(intent.table, intent.table_id)
        return newest_batches(intent.table_id, [*stored.batches, batch])

    def totals(self, table: str, table_id: str) -> Totals:
        """Return the totals of the table, from all its events; of a batch that was closed twice, the last close."""
        columns = ("recorded_at", "token", "version", "intent", "rows")
        closes = self._batches.find(table, columns, event=[BatchEvent.CLOSED], table_id=[table_id])
        started = self._started(table, table_id=[table_id])
        totals = Totals(table_id=table_id)
        for row in {row["token"]: row for row in closes}.values():
            seconds = _seconds(started.get(row["token"]), row["recorded_at"])
            totals = add_batch(totals, recorded_winner(row), RowCounts.model_validate_json(row["rows"]), seconds)
        return totals

    def totals_after(
        self, winner: Winner, rows: RowCounts, started_at: datetime | None, at: datetime, stored: Totals | None
    ) -> Totals:
        """Return the totals after a close.

        If the state lacks them, or lacks an earlier batch because the write after its close failed, they are computed
        from the events, which include this close.

        Args:
            winner: the batch.
            rows: its row counts.
            started_at: when its intent was recorded; None if another process did it.
            at: when it was closed.
            stored: the totals in the state.
        """
        intent = winner.intent
        if stored is None or stored.table_id != intent.table_id:
            return self.totals(intent.table, intent.table_id)
        if stored.includes(winner):
            return stored
        if not stored.is_next(winner):
            return self.totals(intent.table, intent.table_id)
        if started_at is None:
            started_at = self._started(intent.table, token=[intent.token]).get(intent.token)
        return add_batch(stored, winner, rows, _seconds(started_at, at))

    def _started(self, table: str, **where: Collection[Any]) -> dict[str, datetime]:
        """Return when the intents that meet conditions were recorded: token -> time."""
        rows = self._batches.find(table, ("recorded_at", "token"), event=[BatchEvent.INTENT], **where)
        return {row["token"]: row["recorded_at"] for row in rows}


def _seconds(started_at: datetime | None, at: datetime) -> float:
    return max((at - started_at).total_seconds(), 0.0) if started_at else 0.0

"""Replays: try quarantined rows again, as a batch of their table like any other (ADR 0014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millrace.contracts.job.requests import QuarantineRequest
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from millrace.control.log.batch import Intent, Stream, StreamPosition, Winner, new_token
from millrace.control.log.streams import stream_of, streams_of
from millrace.control.planning.source_ranges import pin_references
from millrace.control.quarantine.events import Decision
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import QuarantinedRow, StoredRows
from millrace_spark.layers.bronze.suppressed_rows import SuppressedRows
from millrace_spark.layers.received_rows import MAX_ROWS
from millrace_spark.layers.silver.replays import source_of
from millrace_spark.protocol.batches import BatchPlan, BatchWork, Closing
from millrace_spark.runtime.context import JobContext


class ReplayWork:
    """The `BatchWork` of a replay: plan quarantined rows, and let the layer write and close.

    A layer recognises a replay by its intent: any later run can close a replay whose driver died.
    """

    def __init__(self, context: JobContext, layer: BatchWork, request: QuarantineRequest, stream: Stream) -> None:
        self._context = context
        self._layer = layer
        self._request = request
        self._stream = stream
        self._tried: set[str] = set()
        self._waiting = 0

    @property
    def has_more(self) -> bool:
        """Whether the last plan left rows for further batches."""
        return self._waiting > 0

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Pin the pending rows, and plan to try them; None if no row is pending."""
        spec, pending = self._context.spec, pending_rows(self._context, self._request)
        own = (row for row in pending if stream_of_row(spec, row) == self._stream)
        rows = [row for row in own if row.id not in self._tried]
        self._waiting = max(len(rows) - MAX_ROWS, 0)
        if not rows:
            return None
        replay, table = new_token(), self._context.spec.table
        decision = Decision(self._request.said_by, self._request.why, self._context.args.run_id)
        pinned = [row.received_row for row in rows[:MAX_ROWS]]
        references = pin_references(spec, self._context.paths, self._context.ops.gates)
        self._context.ops.quarantine.pin(table, position.table_id, replay, pinned, decision)
        suppressed = SuppressedRows(self._context.paths, spec).pin() if isinstance(spec, BronzeSpec) else None
        of_replay = {"replay": replay, "replayed_rows": len(pinned), "suppressed": suppressed}
        return BatchPlan(position.last_sources.at_same_position(**of_replay, references=references))

    def write(self, session: Any, intent: Intent, plan: BatchPlan) -> None:
        """Write the rows as the layer writes any row."""
        self._layer.write(session, intent, plan)

    def close(self, winner: Winner) -> Closing:
        """Close the batch, and remember its rows: the run does not try a row twice."""
        closing = self._layer.close(winner)
        if replay := winner.intent.sources.replay:
            self._tried |= {row.id for row in self._context.ops.quarantine.pinned_rows(winner.intent.table, replay)}
        return closing


def streams_of_rows(context: JobContext, request: QuarantineRequest) -> Sequence[Stream]:
    """Return the streams whose batches replay the requested rows: the streams that read them.

    Without a row, return the stream of the job's interval, or all streams of a silver table: they may have a batch that
    nobody has closed.
    """
    spec = context.spec
    streams = tuple(dict.fromkeys(stream_of_row(spec, row) for row in pending_rows(context, request)))
    of_run = (stream_of(spec, context.args.interval_start),) if isinstance(spec, BronzeSpec) else streams_of(spec)
    return streams or of_run


def stream_of_row(spec: AnySpec, row: QuarantinedRow) -> Stream:
    """Return the stream that read a quarantined row: that of its interval in bronze, of its source in silver."""
    has_sources = isinstance(spec, SilverSpec) and spec.concurrent_by
    return Stream(spec.table, source_of(row.received)) if has_sources else stream_of(spec, row.interval_start)


def pending_rows(context: JobContext, request: QuarantineRequest) -> Sequence[QuarantinedRow]:
    """Return the requested rows, in the order in which they were refused."""
    rows = quarantined_rows(StoredRows(context.spec.table, context.paths), request.rows)
    return sorted(rows, key=lambda row: (row.batch_seq, row.id))

"""Change which streams may write a table, so that no batch of the earlier streams commits afterwards (ADR 45, 57)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.log.batch import BatchSources, Intent, Stream, StreamPosition, Winner
from millrace.control.log.stored_tables import is_table
from millrace.control.log.streams import (
    CHANGING,
    CONCURRENT_BY,
    STREAMS,
    concurrency_at,
    concurrency_of,
    names_of,
    streams_at,
    streams_of,
)
from millrace.control.planning.stream_positions import stream_positions
from millrace_spark.delta_io.merges import commit_no_change
from millrace_spark.delta_io.tables import set_properties
from millrace_spark.layers.maintenance.maintenance import maintenance_conf
from millrace_spark.layers.own_table import WorkOfStream, batch_request
from millrace_spark.protocol.batches import BatchPlan, BatchWork, BatchWriter, Closing
from millrace_spark.runtime.context import JobContext


@dataclass(frozen=True)
class Fence:
    """The `BatchWork` that takes the next number of a stream and changes no row.

    A batch that was planned before finds its number taken. Then it plans again, and sees that the table is changing.

    Attributes:
        context: the job's.
        layer: closes the last batch of the stream, if its writer died.
        sources: the sources at which the stream goes on; by default those of its last batch.
    """

    context: JobContext
    layer: BatchWork
    sources: BatchSources | None = None

    def plan(self, position: StreamPosition) -> BatchPlan:
        """Plan to read nothing."""
        return BatchPlan((self.sources or position.last_sources).at_same_position())

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Make one commit without a change; the layer checks first whether the stream can go on at other sources."""
        if self.sources is None:
            commit_no_change(session, self.context.paths.table(intent.table))
        else:
            self.layer.write(session, intent, plan)

    def close(self, winner: Winner) -> Closing:
        """Close this batch, or the one before it."""
        return self.layer.close(winner)


def has_other_streams(context: JobContext) -> bool:
    """Whether the job's table exists, and its streams are not those of its spec."""
    path = context.paths.table(context.spec.table)
    return is_table(path) and concurrency_at(path) != concurrency_of(context.spec)


def follow_concurrency(context: JobContext, layer_of: WorkOfStream) -> None:
    """Make the streams of an existing table those of its spec.

    No batch is planned while the table says `changing`. A driver that dies here leaves it so, and the next one begins
    again.

    Raises:
        BadInputError: earlier batches have merged rows of a source that are not of its partitions.
        ConflictError: other writers held the lease for too long, or won too often.
    """
    if not has_other_streams(context):
        return
    spec, path = context.spec, context.paths.table(context.spec.table)
    wanted = concurrency_of(spec)
    with context.leases.table(spec.table):
        if not has_other_streams(context):
            return
        before = concurrency_at(path)
        every = tuple(dict.fromkeys((*streams_of(spec), *streams_at(spec.table, path))))
        names = {STREAMS: names_of(every)} if isinstance(spec, SilverSpec) else {}
        _set(context, {**names, CONCURRENT_BY: CHANGING})
        for stream in every:
            _fence(context, stream, Fence(context, layer_of(stream)))
        if isinstance(spec, SilverSpec):
            # Now no batch of the earlier streams can commit: what they have consumed is final.
            positions = stream_positions(spec, context.paths, context.ops.ledger)
            consumed = BatchSources().with_ranges_of([position.last_sources for position in positions])
            for stream in every:  # the streams of the spec come first, so that no position is ever missing
                sources = consumed.only(_sources_of(spec, stream))
                _fence(context, stream, Fence(context, layer_of(stream), sources))
            names = {STREAMS: names_of(streams_of(spec))}
        _set(context, {**names, CONCURRENT_BY: wanted})
    context.notes.append(f"{spec.table} follows its spec: concurrent_by was {before} and is {wanted}")


def _sources_of(spec: SilverSpec, stream: Stream) -> tuple[str, ...]:
    """Return the sources that a stream consumes by the spec; none if the spec does not have the stream."""
    if stream not in streams_of(spec):
        return ()
    return (stream.name,) if spec.concurrent_by else spec.source_tables


def _fence(context: JobContext, stream: Stream, fence: Fence) -> None:
    request = batch_request(context, stream)
    BatchWriter(request, fence, context.ops.ledger, context.open_session, context.spec.conflicts).run_unleased()


def _set(context: JobContext, properties: dict[str, str]) -> None:
    with context.open_session(maintenance_conf(context, spec_hash=context.spec.spec_hash)) as session:
        set_properties(session, context.paths.table(context.spec.table), properties)

"""Change which streams may write a table, so that no batch of the earlier streams commits afterwards (ADR 45)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from include.control.landing.streams import (
    CHANGING,
    CONCURRENT_BY,
    all_streams,
    concurrency_at,
    concurrency_of,
)
from include.control.log.batch import Intent, StreamPosition, Winner
from include.control.log.stored_tables import is_table
from spark_jobs.delta_io.merges import commit_no_change
from spark_jobs.delta_io.tables import set_property
from spark_jobs.layers.maintenance.maintenance import maintenance_conf
from spark_jobs.layers.own_table import batch_request
from spark_jobs.protocol.batches import BatchPlan, BatchWork, BatchWriter, Closing
from spark_jobs.runtime.context import JobContext


@dataclass(frozen=True)
class Fence:
    """The `BatchWork` that takes the next number of a stream and changes no row.

    A batch that was planned before finds its number taken. Then it plans again, and sees that the table is changing.

    Attributes:
        context: the job's.
        layer: closes the last batch of the stream, if its writer died.
    """

    context: JobContext
    layer: BatchWork

    def plan(self, position: StreamPosition) -> BatchPlan:
        """Plan to read nothing."""
        return BatchPlan(position.last_sources.at_same_position())

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Make one commit without a change."""
        commit_no_change(session, self.context.paths.table(intent.table))

    def close(self, winner: Winner) -> Closing:
        """Close this batch, or the one before it."""
        return self.layer.close(winner)


def follow_concurrency(context: JobContext, layer: BatchWork) -> None:
    """Make the streams of an existing table those of its spec.

    No batch is planned while the table says `changing`. A driver that dies here leaves it so, and the next one begins
    again.

    Raises:
        ConflictError: other writers held the lease for too long, or won too often.
    """
    spec, path = context.spec, context.paths.table(context.spec.table)
    wanted = concurrency_of(spec)
    if not is_table(path) or concurrency_at(path) == wanted:
        return
    with context.leases.table(spec.table):
        before = concurrency_at(path)
        if before == wanted:
            return
        _set(context, CHANGING)
        for stream in all_streams(spec.table):
            request, fence = batch_request(context, stream), Fence(context, layer)
            BatchWriter(request, fence, context.ops.ledger, context.open_session, spec.conflicts).run_unleased()
        _set(context, wanted)
    context.notes.append(f"{spec.table} follows its spec: concurrent_by was {before} and is {wanted}")


def _set(context: JobContext, value: str) -> None:
    with context.open_session(maintenance_conf(context, spec_hash=context.spec.spec_hash)) as session:
        set_property(session, context.paths.table(context.spec.table), CONCURRENT_BY, value)

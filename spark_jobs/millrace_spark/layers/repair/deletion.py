"""Delete rows of a table as a batch of it, once, however often its driver dies (ADR 61)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.lake_path import LakePath
from millrace.control.ledger.resolution import resolve
from millrace.control.log.batch import Intent, Repair, Stream, StreamPosition, Winner
from millrace.errors import MillraceError, RepairError
from millrace_spark.delta_io.row_writes import replace_where
from millrace_spark.delta_io.tables import sql_path
from millrace_spark.layers.own_table import batch_request
from millrace_spark.layers.own_work import own_work
from millrace_spark.protocol.batches import BatchPlan, BatchWriter, Closing
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.stamps import with_stamp

Delete = Callable[[SparkSession, LakePath], None]
"""Deletes rows of the table in a folder by exactly one commit of the session; a MERGE commits also without a match."""


@dataclass(frozen=True)
class Deletion:
    """The `BatchWork` of a batch that deletes or replaces rows: it reads nothing, and the stream goes on where it was.

    Attributes:
        context: the job's.
        stream: the stream of the table whose next number the batch takes.
        deletes: what it deletes, for people; never a value of a person.
        delete: makes the commit.
        token: the token of the batch: who has the same one goes on with the same deletion.
        repair: the repair that a person has asked for; None for a deletion of another kind.
        newest: the newest version that was looked at; a later one is refused. None for any.
        rows: the rows that replace those of the condition `deletes`, if there are any; then nothing else is deleted.
    """

    context: JobContext
    stream: Stream
    deletes: str
    delete: Delete
    token: str
    repair: Repair | None = None
    newest: int | None = None
    rows: Callable[[SparkSession], DataFrame] | None = None

    def run(self) -> Winner:
        """Delete the rows, or go on where that was interrupted; the caller holds the lease of the table.

        Returns:
            The batch. Its version is not yet certified.

        Raises:
            RepairError: the table has changed since it was looked at.
            ConflictError: other writers won until the limits were reached.
        """
        context, table = self.context, self.context.spec.table
        request = batch_request(context, self.stream)
        last = resolve(request.path, self.stream, context.ops.ledger).last
        if last:  # The rows that stay are those of its spec, and as fresh as it is.
            request = replace(request, spec_hash=last.intent.spec_hash, interval=last.intent.interval)
        limits = context.spec.conflicts
        BatchWriter(request, self, context.ops.ledger, context.open_session, limits).run_unleased()
        winner = context.ops.ledger.batch_of(table, self.token)
        if winner is None:
            raise MillraceError(f"{table}: the ledger lacks the batch that has deleted rows, of token {self.token}")
        return winner

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Plan to read nothing; None if the rows were deleted already.

        Raises:
            RepairError: the table has changed since it was looked at.
        """
        table, ledger = self.context.spec.table, self.context.ops.ledger
        if ledger.batch_of(table, self.token):
            return None
        if self.newest is not None and position.version != self.newest:
            raise RepairError(
                f"{table}: version {position.version} came after version {self.newest}, which was looked at",
                "Nothing was deleted. Look at it again.",
            )
        sources = position.last_sources.at_same_position(deletes=self.deletes, repair=self.repair)
        return BatchPlan(sources, token=self.token)

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Make the commit that deletes the rows, or replaces them."""
        path = self.context.paths.table(intent.table)
        if self.rows is None:
            self.delete(session, path)
        else:
            replace_where(with_stamp(self.rows(session), intent), path, self.deletes)

    def close(self, winner: Winner) -> Closing:
        """Count the deleted rows, or close the batch before it, as any run of the table does."""
        return own_work(self.context, self.stream).close(winner)


def delete_where(condition: str) -> Delete:
    """Return what deletes the rows that fulfil a condition, at least one; Delta's log has the condition."""

    def delete(session: SparkSession, path: LakePath) -> None:
        session.sql(f"DELETE FROM {sql_path(path)} WHERE {condition}").collect()

    return delete

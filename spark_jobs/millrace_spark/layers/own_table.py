"""Create the table that a job writes, or change it to follow its spec, before the first batch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from millrace.control.changes.table_diff import TableDiff, changes_since
from millrace.control.log.batch import Intent, Stream, StreamPosition, Winner
from millrace.control.log.streams import concurrency_at, concurrency_of
from millrace.control.planning.stream_positions import stream_position
from millrace.errors import NotReadyError
from millrace_spark.delta_io.tables import TableShape, ensure_table
from millrace_spark.layers.maintenance.maintenance import maintenance_conf
from millrace_spark.protocol.batches import BatchPlan, BatchRequest, BatchWork, Closing
from millrace_spark.runtime.context import JobContext

log = logging.getLogger(__name__)


WorkOfStream = Callable[[Stream], BatchWork]
"""Returns what writes and closes the batches of a stream of the job's table."""


def ensure_own_table(context: JobContext, shape: TableShape) -> None:
    """Create or change the job's table; the store itself decides conflicts.

    The report has a note for each change of an existing table.

    Raises:
        BadInputError, ConflictError: as `ensure_table`.
    """
    path = context.paths.table(context.spec.table)

    def open_session(conf: dict[str, str]) -> AbstractContextManager[SparkSession]:
        return context.open_session({**maintenance_conf(context, spec_hash=context.spec.spec_hash), **conf})

    changes = ensure_table(open_session, path, shape)
    for line in changes:
        log.info("%s: %s", context.spec.table, line)
    context.notes.extend(f"{context.spec.table} follows its spec: {line}" for line in changes)


def require_fitting_table(context: JobContext, spec: AnySpec) -> TableDiff:
    """Check that the table's existing rows still fit its spec.

    Returns:
        The other changes of the spec; no changes if there is no table yet.

    Raises:
        MisfitError: the spec has other keys, another order, another type or another partition; the message says how
            to rebuild the table.
    """
    position = stream_position(spec, context.paths, context.ops.ledger)
    if position is None:
        return TableDiff(spec.table)
    changes = changes_since(spec, position.last, context.ops)
    changes.require_fit()
    return changes


def batch_request(context: JobContext, stream: Stream) -> BatchRequest:
    """Return the target and the origin of the job's next batch in a stream."""
    return BatchRequest(
        path=context.paths.table(context.spec.table),
        stream=stream,
        interval=context.args.interval,
        run_id=context.args.run_id,
        spec_hash=context.spec.spec_hash,
        now=context.now,
    )


@dataclass(frozen=True)
class FittingWork:
    """The `BatchWork` of a table that must fit its spec at the moment of the plan.

    While the driver waits for the lease, a rebuild with a newer spec may replace the table that the driver checked.
    """

    context: JobContext
    work: BatchWork

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Plan what to read; None if nothing is new.

        Raises:
            BadInputError: the table does not fit the spec any more.
            NotReadyError: its streams are not those of the spec any more.
        """
        self._require_streams()
        changes_since(self.context.spec, position.last, self.context.ops).require_fit()
        return self.work.plan(position)

    def write(self, session: Any, intent: Intent, plan: BatchPlan) -> None:
        """Make exactly one commit."""
        self.work.write(session, intent, plan)

    def close(self, winner: Winner) -> Closing:
        """Do the batch's secondary writes, and count its rows."""
        return self.work.close(winner)

    def _require_streams(self) -> None:
        spec = self.context.spec
        if not isinstance(spec, BronzeSpec | SilverSpec):
            return
        wanted, now = concurrency_of(spec), concurrency_at(self.context.paths.table(spec.table))
        if now != wanted:
            raise NotReadyError(
                f"{spec.table}: concurrent_by is {wanted} in the spec of this run, and {now} in the table",
                "Another run has just changed it. Nothing was written; run this again with the spec that is in force.",
            )

"""The table that a job writes: made, and held to its spec, before the first batch."""

from __future__ import annotations

import json
import logging
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from include.contracts.spec.table_spec import AnySpec
from include.control.changes.table_diff import TableDiff, changes_since
from include.control.ledger.resolution import look
from include.control.log.batch import Intent, Stream, StreamPosition, Winner, new_token
from include.control.log.delta_log import MAINTENANCE_KEY
from include.control.log.stored_tables import is_table
from spark_jobs.delta_io.tables import TableShape, ensure_table
from spark_jobs.protocol.batches import BatchPlan, BatchWork, Closing
from spark_jobs.runtime.context import JobContext

log = logging.getLogger(__name__)


def changing_conf(context: JobContext) -> dict[str, str]:
    """Marks a commit that is no batch with its run, a token and the spec that it follows."""
    told = {"run_id": context.args.run_id, "token": new_token(), "spec_hash": context.spec.spec_hash}
    return {"spark.databricks.delta.commitInfo.userMetadata": json.dumps({MAINTENANCE_KEY: told})}


def ensure_own_table(context: JobContext, shape: TableShape) -> None:
    """`ensure_table` for the job's table, while nobody else commits to it unless the store decides who wins.

    What it changes of a table that was there is told in the report.

    Raises:
        BadInputError, ConflictError: as `ensure_table`.
        LeaseLostError: somebody else wrote the table for too long.
    """
    with context.only_writer():
        ensure_leased_table(context, shape)


def ensure_leased_table(context: JobContext, shape: TableShape) -> None:
    """The same for a writer that holds the table's lease: it would wait for itself.

    Raises:
        BadInputError, ConflictError: as `ensure_table`.
    """
    path = context.paths.table(context.spec.table)

    def as_maintenance(conf: dict[str, str]) -> AbstractContextManager[SparkSession]:
        return context.open_session({**changing_conf(context), **conf})

    changed = ensure_table(as_maintenance, path, shape)
    for line in changed:
        log.info("%s: %s", context.spec.table, line)
    context.notes.extend(f"{context.spec.table} follows its spec: {line}" for line in changed)


def require_fitting_table(context: JobContext, spec: AnySpec) -> TableDiff:
    """Refuse to write to a table whose rows were built on something that its spec says otherwise by now.

    Returns:
        What else changed; nothing where there is no table yet.

    Raises:
        BadInputError: its keys, its order, a type or a partition are others; the message says how to build it anew.
    """
    path = context.paths.table(spec.table)
    if not is_table(path):
        return TableDiff(spec.table)
    position, _ = look(path, Stream(spec.table), context.records.ledger)
    changed = changes_since(spec, position.last, context.records)
    changed.require_fitting()
    return changed


@dataclass(frozen=True)
class FittingWork:
    """The work of a batch on a table that fits its spec at the moment of the plan.

    While the lease is waited for, a rebuild by a newer spec than the driver has read may have put another table in the
    place of the one that was looked at.
    """

    context: JobContext
    work: BatchWork

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """What to read from here, or None when there is nothing new.

        Raises:
            BadInputError: the table does not fit the spec any more.
        """
        changes_since(self.context.spec, position.last, self.context.records).require_fitting()
        return self.work.plan(position)

    def write(self, session: Any, intent: Intent, plan: BatchPlan) -> None:
        """Make exactly one commit."""
        self.work.write(session, intent, plan)

    def close(self, winner: Winner) -> Closing:
        """Do the batch's secondary writes, and count the fates of its rows."""
        return self.work.close(winner)

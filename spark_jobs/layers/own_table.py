"""The table that a job writes: made, and held to its spec, before the first batch."""

from __future__ import annotations

import json
import logging
from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from include.contracts.table_spec import AnySpec
from include.control.batch import Stream, new_token
from include.control.delta_log import MAINTENANCE_KEY
from include.control.resolution import look
from include.control.spec_changes import Effect
from include.control.stored_tables import is_table
from include.control.table_diff import table_diff
from include.errors import BadInputError
from spark_jobs.delta_io.tables import TableShape, ensure_table
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
    path = context.paths.table(context.spec.table)

    def as_maintenance(conf: dict[str, str]) -> AbstractContextManager[SparkSession]:
        return context.open_session({**changing_conf(context), **conf})

    with context.only_writer():
        changed = ensure_table(as_maintenance, path, shape)
    for line in changed:
        log.info("%s: %s", context.spec.table, line)
    context.notes.extend(f"{context.spec.table} follows its spec: {line}" for line in changed)


def require_fitting_table(context: JobContext, spec: AnySpec) -> None:
    """Refuse to write to a table whose rows were built on something that its spec says otherwise by now.

    Raises:
        BadInputError: its keys, its order, a type or a partition are others; the message says how to build it anew.
    """
    path = context.paths.table(spec.table)
    if not is_table(path):
        return
    position, _ = look(path, Stream(spec.table), context.records.ledger)
    found = table_diff(spec, position.last, context.records).of(Effect.REBUILD)
    if found:
        msg = (
            f"{spec.table} does not fit its spec: {'; '.join(map(str, found))}\n"
            f"Nothing was written. Put the spec back, or build the table anew: lakehouse rebuild {spec.table}"
        )
        raise BadInputError(msg)

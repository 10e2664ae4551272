"""Delete tombstones of a silver table: of keys that exist again, and after the retention of its spec (ADR 0019)."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.ledger.resolution import table_id
from millrace.control.maintenance.tombstones import OldTombstones, old_tombstones, tombstones_to_search
from millrace_spark.delta_io.maintenance import count_returned_keys, delete_returned_keys, delete_tombstones
from millrace_spark.layers.maintenance.maintenance import LeasedTable
from millrace_spark.runtime.context import JobContext


def expired_tombstones(context: JobContext) -> OldTombstones:
    """Return the tombstones of the job's table whose retention is over."""
    return old_tombstones(context.spec, context.paths, context.ops.ledger, context.now())


def delete_expired_tombstones(context: JobContext, session: SparkSession, work: LeasedTable) -> OldTombstones:
    """Delete these tombstones, unless a batch needs them, and return them; the caller holds the table's lease.

    Raises:
        ConflictError: writers without a lease committed first too often.
    """
    expired, spec = expired_tombstones(context), context.spec
    if not expired.may_go or not isinstance(spec, SilverSpec):
        return expired
    path = context.paths.tombstones(spec.table, table_id(context.paths.table(spec.table)))
    deleted = work.commit(lambda: delete_tombstones(session, path, spec.keys, expired.upto), path)
    return replace(expired, keys=deleted)


def count_unneeded_tombstones(context: JobContext, session: SparkSession) -> int:
    """Return how many tombstones of the job's table can be deleted because their keys exist again."""
    spec, table = context.spec, context.paths.table(context.spec.table)
    if not isinstance(spec, SilverSpec) or not tombstones_to_search(spec, context.ops):
        return 0
    return count_returned_keys(session, context.paths.tombstones(spec.table, table_id(table)), table, spec.keys)


def delete_unneeded_tombstones(context: JobContext, session: SparkSession, work: LeasedTable) -> int:
    """Delete the tombstones of keys that exist again, and return how many; the caller holds the table's lease.

    Raises:
        ConflictError: writers without a lease committed first too often.
    """
    spec, table = context.spec, context.paths.table(context.spec.table)
    if not isinstance(spec, SilverSpec) or not count_unneeded_tombstones(context, session):
        return 0
    path = context.paths.tombstones(spec.table, table_id(table))
    return work.commit(lambda: delete_returned_keys(session, path, table, spec.keys), path)


def retention_note(table: str, expired: OldTombstones) -> tuple[str, ...]:
    """Return a note if expired tombstones stay, because a batch whose driver died needs them."""
    if not expired.keys or expired.unclosed is None:
        return ()
    return (
        f"{expired.keys:,} deleted keys of {table} are kept for more than {expired.retain} and stay for now: batch "
        f"{expired.unclosed} is not closed, and will be counted again from them. Run the task that writes {table}; the "
        "next vacuum forgets them",
    )

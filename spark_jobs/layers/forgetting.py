"""Deleted keys that a silver table forgets, once its spec retains them no longer (ADR 0019)."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from include.contracts.table_spec import SilverSpec
from include.control.resolution import table_id
from include.control.tombstones import OldTombstones, old_tombstones
from spark_jobs.delta_io.conflict_policy import WriteKind
from spark_jobs.delta_io.contest import Contest, commit_anyway
from spark_jobs.delta_io.maintenance import delete_tombstones
from spark_jobs.runtime.context import JobContext


def tombstones_to_forget(context: JobContext) -> OldTombstones:
    """Those of the job's table, now."""
    return old_tombstones(context.spec, context.paths, context.records.ledger, context.now())


def forget_tombstones(context: JobContext, session: SparkSession, contest: Contest) -> OldTombstones:
    """Forget what may go; the caller holds the lease of the table. What was forgotten, or what stays for now.

    Raises:
        ConflictError: writers that know no lease were faster again and again.
    """
    old, spec = tombstones_to_forget(context), context.spec
    if not old.may_go or not isinstance(spec, SilverSpec):
        return old
    path = context.paths.tombstones(spec.table, table_id(context.paths.table(spec.table)))
    forgotten = commit_anyway(
        contest, WriteKind.MAINTENANCE, path, lambda: delete_tombstones(session, path, spec.keys, old.upto)
    )
    return replace(old, keys=forgotten or 0)


def forgetting_note(table: str, old: OldTombstones) -> tuple[str, ...]:
    """A remark where old tombstones stay, since a batch that died needs them."""
    if not old.keys or old.unclosed is None:
        return ()
    return (
        f"{old.keys:,} deleted keys of {table} are kept for more than {old.retain} and stay for now: batch "
        f"{old.unclosed} is not closed, and will be counted again from them. Run the task that writes {table}; the "
        "next vacuum forgets them",
    )

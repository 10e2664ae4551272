"""Deleted keys that a silver table forgets: those that live again, or that its spec retains no longer (ADR 0019)."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from include.contracts.spec.table_spec import SilverSpec
from include.control.ledger.resolution import table_id
from include.control.log.stored_tables import is_table
from include.control.maintenance.tombstones import OldTombstones, old_tombstones
from include.control.planning.planner import stream_position
from spark_jobs.delta_io.conflict_policy import WriteKind
from spark_jobs.delta_io.contest import Contest, commit_anyway
from spark_jobs.delta_io.maintenance import count_risen_keys, delete_risen_keys, delete_tombstones
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


def risen_keys(context: JobContext, session: SparkSession) -> int:
    """How many tombstones of the job's table may go since their keys live again: their rows tell late events as well.

    None where a batch may still be taken back, or counted again from them: the last one is not closed and certified.
    """
    spec, records = context.spec, context.records
    if not isinstance(spec, SilverSpec) or spec.builds_on_earlier or spec.snapshot:
        return 0
    position = stream_position(spec, context.paths, records.ledger)
    last, certified = position.last if position else None, records.gates.certified(spec.table)
    if last is None or not records.ledger.closed(last) or certified is None or certified < last.version:
        return 0
    path = context.paths.tombstones(spec.table, last.intent.table_id)
    return count_risen_keys(session, path, context.paths.table(spec.table), spec.keys) if is_table(path) else 0


def forget_risen_keys(context: JobContext, session: SparkSession, contest: Contest) -> int:
    """Forget them; the caller holds the lease of the table. Returns how many went.

    Raises:
        ConflictError: writers that know no lease were faster again and again.
    """
    spec, table = context.spec, context.paths.table(context.spec.table)
    if not isinstance(spec, SilverSpec) or not risen_keys(context, session):
        return 0
    path = context.paths.tombstones(spec.table, table_id(table))
    forgotten = commit_anyway(
        contest, WriteKind.MAINTENANCE, path, lambda: delete_risen_keys(session, path, table, spec.keys)
    )
    return forgotten or 0


def forgetting_note(table: str, old: OldTombstones) -> tuple[str, ...]:
    """A remark where old tombstones stay, since a batch that died needs them."""
    if not old.keys or old.unclosed is None:
        return ()
    return (
        f"{old.keys:,} deleted keys of {table} are kept for more than {old.retain} and stay for now: batch "
        f"{old.unclosed} is not closed, and will be counted again from them. Run the task that writes {table}; the "
        "next vacuum forgets them",
    )

"""Delete the files of a table that neither a version within its retention nor a reader needs.

In a silver table, also delete the tombstones of keys that exist again, and old tombstones if its spec has a retention.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import open_table
from millrace.control.maintenance.maintained import keep_maintained
from millrace.control.maintenance.old_files import OldFiles, old_files, stated_retention
from millrace.control.maintenance.retention import readers_in_danger, readers_of
from millrace.control.maintenance.tombstones import OldTombstones, tombstones_to_search
from millrace.control.storage.stored_files import files_below
from millrace.errors import MillraceError, Outcome
from millrace_spark.delta_io.maintenance import vacuum
from millrace_spark.layers.maintenance.maintenance import (
    LeasedTable,
    maintenance_conf,
    maintenance_report,
    require_table,
    table_work,
)
from millrace_spark.layers.maintenance.tombstone_retention import (
    count_unneeded_tombstones,
    delete_expired_tombstones,
    delete_unneeded_tombstones,
    expired_tombstones,
    retention_note,
)
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Find what can be deleted; then delete it under the table's lease, unless it is a dry run.

    Spark is only started if there is something to delete, or if the table has deleted keys that may exist again.

    Raises:
        NotReadyError: there is no table yet.
        MillraceError: a reader needs a version that would soon become unreadable.
        ConflictError: the lease was not free in time, or writers without a lease committed first too often.
    """
    path, work, unneeded = require_table(context), None, 0
    delta = open_table(path)
    retention = stated_retention(delta.metadata().configuration, str(path))
    _require_no_reader_in_danger(context, retention)
    old, expired = old_files(path, delta, files_below(path), context.now()), expired_tombstones(context)
    has_work = bool(old.due or expired.may_go) and not context.args.dry_run
    if has_work or tombstones_to_search(context.spec, context.ops):
        with context.open_session(maintenance_conf(context)) as session:
            unneeded = count_unneeded_tombstones(context, session)
            if (has_work or unneeded) and not context.args.dry_run:
                with table_work(context, "VACUUM") as work, work.leased():
                    if old.due:
                        work.commit(lambda: vacuum(session, path))
                    unneeded = delete_unneeded_tombstones(context, session, work)
                    expired = delete_expired_tombstones(context, session, work)
    if not context.args.dry_run:
        vacuumed_at = context.now() if old.due else None
        keep_maintained(context.ops, context.spec.table, vacuumed_at=vacuumed_at, searched=latest_version(path))
    return _report(context, old, unneeded, expired, work)


def _report(
    context: JobContext, old: OldFiles, unneeded: int, expired: OldTombstones, work: LeasedTable | None
) -> JobReport:
    files = len(old.due)
    keys, is_dry_run = expired.keys if expired.may_go else 0, context.args.dry_run
    deleted, forgot = ("would delete", "would forget") if is_dry_run else ("deleted", "forgot")
    freed = f"{deleted} {counted(files, 'file')} ({in_bytes(old.due_bytes)})"
    parts = [freed if files else "no file is older than the retention"]
    details: dict[str, Any] = {"files": files, "bytes": old.due_bytes, "retain": context.spec.maintenance.vacuum.retain}
    if unneeded:
        parts.append(f"{forgot} {counted(unneeded, 'deleted key that exists', 'deleted keys that exist')} again")
        details["risen_keys"] = unneeded
    if keys:
        parts.append(f"{forgot} {counted(keys, 'deleted key')}, of batches up to {expired.upto}")
    if expired.retain:
        details["tombstones"] = {"keys": keys, "upto_batch": expired.upto, "retain": expired.retain}
    outcome = Outcome.COMMITTED if (files or keys or unneeded) and not is_dry_run else Outcome.NO_OP
    notes = retention_note(context.spec.table, expired)
    return maintenance_report(context, Job.TABLE_VACUUM, outcome, "; ".join(parts), details, notes, work)


def _require_no_reader_in_danger(context: JobContext, retention: timedelta) -> None:
    readers = readers_of(context.spec, context.catalog, context.paths)
    in_danger = readers_in_danger(readers, retention, context.now())
    if in_danger:
        names = ", ".join(f"{reader.name} (version {reader.version}, old since {reader.since})" for reader in in_danger)
        raise MillraceError(
            f"{context.spec.table}: VACUUM refused, it would soon cut off {names}\nRun what is behind, or get "
            "the refused newer versions past their gate; then run this again."
        )


if __name__ == "__main__":
    main(Job.TABLE_VACUUM, run)

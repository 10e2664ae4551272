"""Delete the files of a table, and of those beside it, that neither a version within the retention nor a reader needs.

In a silver table, also delete the tombstones of keys that exist again, and old tombstones if its spec has a retention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.lake_path import LakePath
from millrace.control.changes.table_properties import retention_properties
from millrace.control.maintenance.health import TableHealth, beside_folders, table_health
from millrace.control.maintenance.maintained import keep_maintained
from millrace.control.maintenance.old_files import LEAST_RETENTION, OldFile, OldFiles
from millrace.control.maintenance.retention import length_of
from millrace.control.maintenance.tombstones import OldTombstones, forgets_soon, tombstones_to_search
from millrace.control.storage.folders import delete_remains
from millrace.errors import MillraceError, Outcome
from millrace.paths import LakehousePaths
from millrace_spark.delta_io.maintenance import vacuum
from millrace_spark.delta_io.tables import set_properties
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

    What the table keeps for less than `LEAST_RETENTION` is only deleted if a person allows it. Spark is only started if
    there is something to delete, or if the table has deleted keys that may exist again.

    Raises:
        NotReadyError: there is no table yet.
        MillraceError: there is a hold on the table, or a reader needs a version that would soon become unreadable.
        ConflictError: the lease was not free in time, or writers without a lease committed first too often.
    """
    require_table(context)
    work, unneeded, health = None, 0, _measured(context)
    _require_no_refusal(health)
    allowed, asked = context.args.allow_deletes, list[str]()
    due, expired = health.due, expired_tombstones(context)
    if not (allowed or context.args.dry_run):
        if health.needs_approval:
            asked.append(f"{counted(len(due), 'old file')}, kept for {length_of(health.retention)}")
            due = ()
        if forgets_soon(context.spec) and expired.may_go:
            asked.append(f"{counted(expired.keys, 'deleted key')}, kept for {expired.retain}")
            expired = replace(expired, keys=0)
    has_work = bool(due or expired.may_go) and not context.args.dry_run
    is_searched = tombstones_to_search(context.spec, context.ops) > 0
    if has_work or is_searched:
        facts = {"allowed_by": allowed} if allowed else {}
        with context.open_session(maintenance_conf(context, **facts)) as session:
            unneeded = count_unneeded_tombstones(context, session)
            if (has_work or unneeded) and not context.args.dry_run:
                with table_work(context, "VACUUM") as work, work.leased():
                    _require_no_refusal(replace(health, holds=context.ops.holds.on(health.table)))
                    for folder, old in _old_files(health, context.paths) if due else ():
                        if not old.is_stated:
                            set_properties(session, folder, retention_properties(context.spec))
                        work.commit(partial(vacuum, session, folder), folder)
                        delete_remains(folder)
                    unneeded = delete_unneeded_tombstones(context, session, work)
                    if expired.may_go:
                        expired = delete_expired_tombstones(context, session, work)
    if context.args.dry_run:
        return _report(context, due, unneeded, expired, health)
    vacuumed_at, searched = context.now() if due else None, health.version if is_searched else None
    keep_maintained(context.ops, context.spec.table, vacuumed_at=vacuumed_at, searched=searched)
    after = _measured(context) if work else health
    # Delta decides by its own clock.
    gone = sorted(set(due) - set(after.due), key=lambda file: file.path)
    return _report(context, gone, unneeded, expired, after, work, asked)


def _measured(context: JobContext) -> TableHealth:
    health = table_health(context.spec, context.catalog, context.ops, context.now())
    assert health is not None, "the table was there"
    return health


def _old_files(health: TableHealth, paths: LakehousePaths) -> Iterator[tuple[LakePath, OldFiles]]:
    """Yield the folders of the table, its quarantine and its tombstones, those with files that may be deleted."""
    if health.old.due:
        yield paths.table(health.table), health.old
    folders = beside_folders(health.table, health.maintained.table_id, paths)
    yield from ((folders[each.name], each.old) for each in health.beside if each.old.due)


def _report(
    context: JobContext,
    gone: Sequence[OldFile],
    unneeded: int,
    expired: OldTombstones,
    measured: TableHealth,
    work: LeasedTable | None = None,
    asked: Sequence[str] = (),
) -> JobReport:
    files, size = len(gone), sum(file.size for file in gone)
    keys, is_dry_run = expired.keys if expired.may_go else 0, context.args.dry_run
    deleted, forgot = ("would delete", "would forget") if is_dry_run else ("deleted", "forgot")
    freed = f"{deleted} {counted(files, 'file')} ({in_bytes(size)})"
    parts = [freed if files else "no file is older than the retention"]
    details: dict[str, Any] = {"files": files, "bytes": size, "retain": context.spec.maintenance.vacuum.retain}
    if unneeded:
        parts.append(f"{forgot} {counted(unneeded, 'deleted key that exists', 'deleted keys that exist')} again")
        details["risen_keys"] = unneeded
    if keys:
        parts.append(f"{forgot} {counted(keys, 'deleted key')}, of batches up to {expired.upto}")
    if context.args.allow_deletes:
        details["allowed_by"] = context.args.allow_deletes
    if expired.retain:
        details["tombstones"] = {"keys": keys, "upto_batch": expired.upto, "retain": expired.retain}
    outcome = Outcome.COMMITTED if (files or keys or unneeded) and not is_dry_run else Outcome.NO_OP
    notes = retention_note(context.spec.table, expired)
    if asked:
        notes += (
            f"{context.spec.table}: a person has to allow what deletes within {length_of(LEAST_RETENTION)}, so that "
            f"these stay: {', '.join(asked)}. Trigger the DAG table_vacuum, or add --allow-deletes to the command",
        )
    message = "; ".join(parts)
    return maintenance_report(context, Job.TABLE_VACUUM, outcome, message, details, notes, work, measured)


def _require_no_refusal(health: TableHealth) -> None:
    if reasons := health.refusals:
        raise MillraceError(f"{health.table}: VACUUM refused: {'; '.join(reasons)}", health.way_out)


if __name__ == "__main__":
    main(Job.TABLE_VACUUM, run)

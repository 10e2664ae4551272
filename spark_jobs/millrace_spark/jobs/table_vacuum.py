"""Delete the files of a table, and of those beside it, that neither a version within the retention nor a reader needs.

In a silver table, also delete the tombstones of keys that exist again, and old tombstones if its spec has a retention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.lake_path import LakePath
from millrace.control.maintenance.health import TableHealth, beside_folders, table_health
from millrace.control.maintenance.maintained import keep_maintained
from millrace.control.maintenance.old_files import OldFile
from millrace.control.maintenance.tombstones import OldTombstones, tombstones_to_search
from millrace.errors import MillraceError, Outcome
from millrace.paths import LakehousePaths
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
    health = table_health(context.spec, context.catalog, context.ops, context.now())
    assert health is not None, "the table was there"
    _require_no_reader_in_danger(health)
    expired = expired_tombstones(context)
    has_work = bool(health.due or expired.may_go) and not context.args.dry_run
    is_searched = tombstones_to_search(context.spec, context.ops) > 0
    if has_work or is_searched:
        with context.open_session(maintenance_conf(context)) as session:
            unneeded = count_unneeded_tombstones(context, session)
            if (has_work or unneeded) and not context.args.dry_run:
                with table_work(context, "VACUUM") as work, work.leased():
                    for folder in _folders_to_vacuum(health, path, context.paths):
                        work.commit(partial(vacuum, session, folder), folder)
                    unneeded = delete_unneeded_tombstones(context, session, work)
                    expired = delete_expired_tombstones(context, session, work)
    if context.args.dry_run:
        return _report(context, health.due, unneeded, expired, work)
    vacuumed_at = context.now() if health.due else None
    searched = health.version if is_searched else None
    keep_maintained(context.ops, context.spec.table, vacuumed_at=vacuumed_at, searched=searched)
    return _report(context, _deleted(context, health.due), unneeded, expired, work)


def _deleted(context: JobContext, due: Sequence[OldFile]) -> list[OldFile]:
    """Return the files that are gone of those that were due: Delta decides by its own clock."""
    after = table_health(context.spec, context.catalog, context.ops, context.now()) if due else None
    return sorted(set(due) - set(after.due), key=lambda file: file.path) if after else []


def _folders_to_vacuum(health: TableHealth, path: LakePath, paths: LakehousePaths) -> Iterator[LakePath]:
    """Yield the folders of the table, its quarantine and its tombstones, those with files that may be deleted."""
    if health.old.due:
        yield path
    folders = beside_folders(health.table, health.maintained.table_id, paths)
    yield from (folders[each.name] for each in health.beside if each.old.due)


def _report(
    context: JobContext, gone: Sequence[OldFile], unneeded: int, expired: OldTombstones, work: LeasedTable | None
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
    if expired.retain:
        details["tombstones"] = {"keys": keys, "upto_batch": expired.upto, "retain": expired.retain}
    outcome = Outcome.COMMITTED if (files or keys or unneeded) and not is_dry_run else Outcome.NO_OP
    notes = retention_note(context.spec.table, expired)
    return maintenance_report(context, Job.TABLE_VACUUM, outcome, "; ".join(parts), details, notes, work)


def _require_no_reader_in_danger(health: TableHealth) -> None:
    if in_danger := health.in_danger:
        names = ", ".join(f"{reader.name} (version {reader.version}, old since {reader.since})" for reader in in_danger)
        raise MillraceError(
            f"{health.table}: VACUUM refused, it would soon cut off {names}",
            "Run what is behind, or get the refused newer versions past their gate; then run this again.",
        )


if __name__ == "__main__":
    main(Job.TABLE_VACUUM, run)

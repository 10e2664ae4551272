"""Delete the files of a table that no version within its retention needs, and that no reader stands on.

A silver table forgets the deleted keys that live again, and its old ones too, where its spec says when.
"""

from __future__ import annotations

from typing import Any

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from include.control.maintenance.retention import readers_in_danger, readers_of, retention_of
from include.control.maintenance.tombstones import OldTombstones
from include.errors import MillraceError, Outcome
from spark_jobs.delta_io.maintenance import files_to_vacuum, vacuum
from spark_jobs.layers.maintenance.maintenance import (
    TableWork,
    maintenance_conf,
    maintenance_report,
    require_table,
    table_work,
)
from spark_jobs.layers.maintenance.tombstone_retention import (
    forget_risen_keys,
    forget_tombstones,
    forgetting_note,
    risen_keys,
    tombstones_to_forget,
)
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Count what would go; then, unless it is a dry run or nothing would, delete it under the table's lease.

    Raises:
        NotReadyError: there is no table yet.
        MillraceError: a reader stands on a version that is about to become unreadable.
        ConflictError: the lease could not be had, or writers that know no lease were faster again and again.
    """
    path, work = require_table(context), None
    _require_no_reader_in_danger(context)
    with context.open_session(maintenance_conf(context)) as session:
        files, old, risen = files_to_vacuum(session, path), tombstones_to_forget(context), risen_keys(context, session)
        if not context.args.dry_run and (files or old.may_go or risen):
            with table_work(context, "VACUUM") as work, work.leased():
                if files:
                    work.commit(lambda: vacuum(session, path))
                risen = forget_risen_keys(context, session, work.contest)
                old = forget_tombstones(context, session, work.contest)
    return _report(context, files, old, risen, work)


def _report(context: JobContext, files: int, old: OldTombstones, risen: int, work: TableWork | None) -> JobReport:
    keys, would = old.keys if old.may_go else 0, context.args.dry_run
    deleted, forgot = ("would delete", "would forget") if would else ("deleted", "forgot")
    said = [f"{deleted} {files} files" if files else "no file is older than the retention"]
    details: dict[str, Any] = {"files": files, "retain": context.spec.maintenance.vacuum.retain}
    if risen:
        said.append(f"{forgot} {risen} deleted keys that live")
        details["risen_keys"] = risen
    if keys:
        said.append(f"{forgot} {keys} deleted keys, of batches up to {old.upto}")
    if old.retain:
        details["tombstones"] = {"keys": keys, "upto_batch": old.upto, "retain": old.retain}
    outcome = Outcome.COMMITTED if (files or keys or risen) and not would else Outcome.NO_OP
    notes = forgetting_note(context.spec.table, old)
    return maintenance_report(context, Job.TABLE_VACUUM, outcome, "; ".join(said), details, notes, work)


def _require_no_reader_in_danger(context: JobContext) -> None:
    readers = readers_of(context.spec, context.catalog, context.paths)
    behind = readers_in_danger(readers, retention_of(context.spec), context.now())
    if behind:
        stand = ", ".join(f"{reader.name} (version {reader.version}, old since {reader.since})" for reader in behind)
        msg = (
            f"{context.spec.table}: VACUUM refused, it would soon cut off {stand}\nRun what is behind, or pass the "
            "gate that refused the newer versions; then run this again."
        )
        raise MillraceError(msg)


if __name__ == "__main__":
    main(Job.TABLE_VACUUM, run)

"""Join the small files of a table, and keep its rows in the order by which readers and merges find them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict

from millrace.contracts.counted import counted
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.lake_path import LakePath
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.delta_log import Commit, commits_after, latest_version
from millrace.control.maintenance.file_layout import Rewrite
from millrace.control.maintenance.health import beside_folders, table_health
from millrace.control.maintenance.maintained import Rewritten, keep_maintained
from millrace.errors import ConservationError, Outcome
from millrace_spark.delta_io.maintenance import optimize, optimize_conf
from millrace_spark.layers.maintenance.maintenance import (
    LeasedTable,
    maintenance_conf,
    maintenance_report,
    require_table,
    table_work,
)
from millrace_spark.layers.maintenance.yield_to_writers import in_turns
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main

FILES = {"numFilesRemoved": "numRemovedFiles", "numFilesAdded": "numAddedFiles"}
"""Detail of the report -> its name in Delta's metrics of a commit."""


def run(context: JobContext) -> JobReport:
    """Optimize the table, its quarantine and its tombstones under its lease, as far as their files need it.

    Raises:
        NotReadyError: there is no table yet.
        ConservationError: the number of rows changed.
        ConflictError: the lease was not free in time, or writers without a lease committed first too often.
    """
    path, spec = require_table(context), context.spec
    health = table_health(spec, context.catalog, context.ops, context.now())
    assert health is not None, "the table was there"
    layout, rewrite = health.layout, health.rewrite
    details = {**asdict(layout), "rewrite": rewrite.value, "zorder_by": list(spec.zorder_by)}
    small = {each.name: each.layout.target_file_bytes for each in health.joinable}
    if (rewrite is Rewrite.NONE and not small) or context.args.dry_run:
        would = [f"would {rewrite} it"] if rewrite is not Rewrite.NONE else []
        would += [f"would join the small files of its {name}" for name in small]
        message = f"{'; '.join(would) or 'left as it is'}: {health.reason}"
        return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.NO_OP, message, details)
    folders, done = beside_folders(spec.table, health.maintained.table_id, context.paths), list[str]()
    with table_work(context, "OPTIMIZE") as work:
        if rewrite is not Rewrite.NONE:
            columns = spec.zorder_by if rewrite is Rewrite.Z_ORDER else ()
            commits = _rewrite(context, work, path, layout.target_file_bytes, columns)
            rewritten = sum(int(commit.metrics["numRemovedBytes"]) for commit in commits)
            seconds = time.monotonic() - work.contest.started - work.waited.seconds
            keep_maintained(context.ops, spec.table, rewritten=Rewritten(rewritten, seconds))
            files = _files(commits)
            details |= files
            done.append(f"{counted(files['numFilesRemoved'], 'file')} became {files['numFilesAdded']} ({rewrite})")
        for name, file_bytes in small.items():
            files = _files(_rewrite(context, work, folders[name], file_bytes, ()))
            done.append(f"{name}: {counted(files['numFilesRemoved'], 'file')} became {files['numFilesAdded']}")
    if work.yielded_to:
        done.append(f"it stopped for other writers: {', '.join(work.yielded_to)}")
    details |= {"gave_way_to": work.yielded_to}
    return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.COMMITTED, "; ".join(done), details, work=work)


def _rewrite(
    context: JobContext, work: LeasedTable, path: LakePath, file_bytes: int, columns: Sequence[str]
) -> list[Commit]:
    """Rewrite the files of a table, and return this run's commits; other writers may commit between them."""
    before, ours = latest_version(path), ("OPTIMIZE", context.args.run_id)
    conf = {**optimize_conf(file_bytes), **maintenance_conf(context)}
    in_turns(work, context.open_session, conf, lambda session: optimize(session, path, columns), path)
    commits = [commit for commit in commits_after(path, before) if (commit.operation, commit.run_id) == ours]
    for version in (commit.version for commit in commits):
        if table_rows(path, version - 1) != table_rows(path, version):
            cause = f"{context.spec.table}: OPTIMIZE changed the number of rows in version {version} of {path}"
            raise ConservationError(cause)
    return commits


def _files(commits: Sequence[Commit]) -> dict[str, int]:
    """Return how many files some commits of OPTIMIZE have removed and added."""
    return {name: sum(int(commit.metrics[metric]) for commit in commits) for name, metric in FILES.items()}


if __name__ == "__main__":
    main(Job.TABLE_OPTIMIZE, run)

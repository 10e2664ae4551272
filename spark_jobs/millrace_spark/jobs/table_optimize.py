"""Join the small files of a table, and keep its rows in the order by which readers and merges find them."""

from __future__ import annotations

import time
from dataclasses import asdict

from millrace.contracts.counted import counted
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.delta_log import Commit, commits_after, latest_version
from millrace.control.maintenance.file_layout import Rewrite
from millrace.control.maintenance.health import layout_of
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
    """Optimize the table under its lease, if its files need it.

    Raises:
        NotReadyError: there is no table yet.
        ConservationError: the number of rows changed.
        ConflictError: the lease was not free in time, or writers without a lease committed first too often.
    """
    path = require_table(context)
    layout, ordered = layout_of(context.spec, context.ops), bool(context.spec.zorder_by)
    is_off = context.spec.maintenance.optimize == "off"
    rewrite = Rewrite.NONE if is_off else layout.rewrite(ordered=ordered)
    details = {**asdict(layout), "rewrite": rewrite.value, "zorder_by": list(context.spec.zorder_by)}
    if rewrite is Rewrite.NONE or context.args.dry_run:
        plan = "left as it is" if rewrite is Rewrite.NONE else f"would {rewrite} it"
        message = f"{plan}: {'the spec says optimize: off' if is_off else layout.reason(ordered=ordered)}"
        return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.NO_OP, message, details)
    work, commits = _rewrite(context, rewrite, layout.target_file_bytes)
    for version in (commit.version for commit in commits):
        if table_rows(path, version - 1) != table_rows(path, version):
            raise ConservationError(f"{context.spec.table}: OPTIMIZE changed the number of rows in version {version}")
    files = {name: sum(int(commit.metrics[metric]) for commit in commits) for name, metric in FILES.items()}
    done = f"{counted(files['numFilesRemoved'], 'file')} became {files['numFilesAdded']} ({rewrite})"
    if work.yielded_to:
        done += f"; it stopped for other writers: {', '.join(work.yielded_to)}"
    details |= {**files, "gave_way_to": work.yielded_to}
    return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.COMMITTED, done, details, work=work)


def _rewrite(context: JobContext, rewrite: Rewrite, file_bytes: int) -> tuple[LeasedTable, list[Commit]]:
    """Rewrite the table's files, and return this run's commits; other writers may commit between them."""
    columns = context.spec.zorder_by if rewrite is Rewrite.Z_ORDER else ()
    conf = {**optimize_conf(file_bytes), **maintenance_conf(context)}
    with table_work(context, "OPTIMIZE") as work:
        before = latest_version(work.path)
        in_turns(work, context.open_session, conf, lambda session: optimize(session, work.path, columns))
    ours = ("OPTIMIZE", context.args.run_id)
    commits = [commit for commit in commits_after(work.path, before) if (commit.operation, commit.run_id) == ours]
    rewritten = sum(int(commit.metrics["numRemovedBytes"]) for commit in commits)
    seconds = time.monotonic() - work.contest.started - work.waited.seconds
    keep_maintained(context.ops, context.spec.table, rewritten=Rewritten(rewritten, seconds))
    return work, commits


if __name__ == "__main__":
    main(Job.TABLE_OPTIMIZE, run)

"""Put the small files of a table together, and keep its rows in the order that readers and merges look them up by."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from include.contracts.job_args import Job
from include.contracts.job_report import JobReport
from include.contracts.lake_path import LakePath
from include.control.conservation import table_rows
from include.control.delta_log import commits_after, latest_version
from include.control.health import Rewrite, health_of
from include.errors import ConservationError, Outcome
from spark_jobs.delta_io.maintenance import optimize, optimize_conf
from spark_jobs.layers.maintenance import TableWork, leased, maintenance_conf, maintenance_report, require_table
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Optimize the table under its lease, when its files call for it; its ledger entries are compacted as well.

    Raises:
        NotReadyError: there is no table yet.
        ConservationError: the number of rows changed.
        ConflictError: the lease could not be had, or writers that know no lease were faster again and again.
    """
    path = require_table(context)
    if not context.args.dry_run:
        context.records.ledger.compact(context.spec.table)
        context.records.quarantine.compact(context.spec.table)
        context.records.commits.compact(context.spec.table)
    health, ordered = health_of(path, context.spec), bool(context.spec.zorder_by)
    is_off = context.spec.maintenance.optimize == "off"
    rewrite = Rewrite.NONE if is_off else health.rewrite(ordered=ordered)
    planned = {**asdict(health), "rewrite": rewrite.value, "zorder_by": list(context.spec.zorder_by)}
    if rewrite is Rewrite.NONE or context.args.dry_run:
        plan = "left as it is" if rewrite is Rewrite.NONE else f"would {rewrite} it"
        message = f"{plan}: {'the spec says optimize: off' if is_off else health.said(ordered=ordered)}"
        return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.NO_OP, message, planned)
    work, metrics = _rewritten(context, rewrite, health.target_file_bytes)
    done = f"{metrics['numFilesRemoved']} files became {metrics['numFilesAdded']} ({rewrite})"
    report = {**planned, **metrics}
    return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.COMMITTED, done, report, work=work)


def _rewritten(context: JobContext, rewrite: Rewrite, file_bytes: int) -> tuple[TableWork, dict[str, Any]]:
    columns = context.spec.zorder_by if rewrite is Rewrite.Z_ORDER else ()
    with leased(context, "OPTIMIZE") as work:
        before = latest_version(work.path)
        with context.open_session({**optimize_conf(file_bytes), **maintenance_conf(context)}) as session:
            metrics = work.commit(lambda: optimize(session, work.path, columns))
    _require_same_rows(context, work.path, before)
    return work, metrics


def _require_same_rows(context: JobContext, path: LakePath, before: int) -> None:
    """Compare the rows around each commit of this run; others may have come between."""
    for commit in commits_after(path, before):
        is_ours = (commit.operation, commit.run_id) == ("OPTIMIZE", context.args.run_id)
        if is_ours and table_rows(path, commit.version - 1) != table_rows(path, commit.version):
            msg = f"{context.spec.table}: OPTIMIZE changed the number of rows in version {commit.version}"
            raise ConservationError(msg)


if __name__ == "__main__":
    main(Job.TABLE_OPTIMIZE, run)

"""Rewrite the small files of a table into few, ordered for its readers."""

from __future__ import annotations

from include.contracts.job_args import Job
from include.contracts.job_report import JobReport
from include.control.conservation import table_rows
from include.control.delta_log import latest_version
from include.errors import ConservationError, Outcome
from spark_jobs.delta_io.maintenance import MAINTENANCE_CONF, SMALL_FILES_WORTH_A_RUN, optimize, small_files
from spark_jobs.layers.maintenance import maintenance_conf, maintenance_report, require_table
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Optimize the table under its lease, when small files call for it; its ledger entries are compacted as well.

    Raises:
        NotReadyError: there is no table yet.
        ConservationError: the number of rows changed.
    """
    path = require_table(context)
    if not context.args.dry_run:
        context.ledger.compact(context.spec.table)
        context.quarantine.compact(context.spec.table)
    small = small_files(path)
    planned = {"small_files": small, "zorder_by": list(context.spec.zorder_by)}
    if context.spec.maintenance.optimize == "off" or small < SMALL_FILES_WORTH_A_RUN:
        why = f"{small} small files, {SMALL_FILES_WORTH_A_RUN} are worth a run"
        return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.NO_OP, f"left as it is: {why}", planned)
    if context.args.dry_run:
        return maintenance_report(
            context, Job.TABLE_OPTIMIZE, Outcome.NO_OP, f"would rewrite {small} small files", planned
        )
    with context.leases.table(context.spec.table):
        before = latest_version(path)
        with context.open_session({**MAINTENANCE_CONF, **maintenance_conf(context)}) as session:
            metrics = optimize(session, path, context.spec.zorder_by)
        after = latest_version(path)
    if table_rows(path, before) != table_rows(path, after):
        msg = f"{context.spec.table}: OPTIMIZE changed the number of rows between versions {before} and {after}"
        raise ConservationError(msg)
    done = f"{metrics['numFilesRemoved']} files became {metrics['numFilesAdded']}"
    return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.COMMITTED, done, {**planned, **metrics})


if __name__ == "__main__":
    main(Job.TABLE_OPTIMIZE, run)

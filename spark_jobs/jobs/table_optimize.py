"""Put the small files of a table together, and keep its rows in the order that readers and merges look them up by."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from include.contracts.job_args import Job
from include.contracts.job_report import JobReport
from include.control.conservation import table_rows
from include.control.delta_log import latest_version
from include.control.health import Rewrite, health_of
from include.errors import ConservationError, Outcome
from spark_jobs.delta_io.maintenance import optimize, optimize_conf
from spark_jobs.layers.maintenance import maintenance_conf, maintenance_report, require_table
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Optimize the table under its lease, when its files call for it; its ledger entries are compacted as well.

    Raises:
        NotReadyError: there is no table yet.
        ConservationError: the number of rows changed.
    """
    path = require_table(context)
    if not context.args.dry_run:
        context.ledger.compact(context.spec.table)
        context.quarantine.compact(context.spec.table)
        context.commits.compact(context.spec.table)
    health, ordered = health_of(path, context.spec), bool(context.spec.zorder_by)
    is_off = context.spec.maintenance.optimize == "off"
    rewrite = Rewrite.NONE if is_off else health.rewrite(ordered=ordered)
    planned = {**asdict(health), "rewrite": rewrite.value, "zorder_by": list(context.spec.zorder_by)}
    if rewrite is Rewrite.NONE or context.args.dry_run:
        plan = "left as it is" if rewrite is Rewrite.NONE else f"would {rewrite} it"
        message = f"{plan}: {'the spec says optimize: off' if is_off else health.said(ordered=ordered)}"
        return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.NO_OP, message, planned)
    metrics = _rewritten(context, path, rewrite, health.target_file_bytes)
    done = f"{metrics['numFilesRemoved']} files became {metrics['numFilesAdded']} ({rewrite})"
    return maintenance_report(context, Job.TABLE_OPTIMIZE, Outcome.COMMITTED, done, {**planned, **metrics})


def _rewritten(context: JobContext, path: Path, rewrite: Rewrite, file_bytes: int) -> dict[str, Any]:
    columns = context.spec.zorder_by if rewrite is Rewrite.Z_ORDER else ()
    with context.leases.table(context.spec.table):
        before = latest_version(path)
        with context.open_session({**optimize_conf(file_bytes), **maintenance_conf(context)}) as session:
            metrics = optimize(session, path, columns)
        after = latest_version(path)
    if table_rows(path, before) != table_rows(path, after):
        msg = f"{context.spec.table}: OPTIMIZE changed the number of rows between versions {before} and {after}"
        raise ConservationError(msg)
    return metrics


if __name__ == "__main__":
    main(Job.TABLE_OPTIMIZE, run)

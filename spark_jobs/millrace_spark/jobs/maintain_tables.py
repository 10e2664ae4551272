"""Maintain tables without Airflow: the actions of a plan, one after the other, in one driver."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from millrace.catalog import load_catalog
from millrace.clock import utc_now
from millrace.contracts.job.args import Job
from millrace.contracts.job.interval_args import MaintenanceArgs
from millrace.contracts.job.report import JobReport, reported_run
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.maintenance.maintained import keep_maintained
from millrace.control.maintenance.verification_due import why_not_due
from millrace.control.ops_tables import OpsTables
from millrace.errors import ExitCode, Outcome
from millrace.settings import Settings
from millrace_spark.jobs import table_log, table_optimize, table_vacuum, table_verify
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import RunJob, run_and_report, start_process


def verify_if_due(context: JobContext) -> JobReport:
    """Verify a gold table unless there is nothing to compare; no Spark is started then."""
    spec = context.spec
    reason = why_not_due(spec, context.catalog, context.ops) if isinstance(spec, GoldSpec) else ""
    if not reason:
        return table_verify.run(context)
    return JobReport(**reported_run(Job.TABLE_VERIFY, context.args), outcome=Outcome.NO_OP, message=reason)


RUN: dict[Job, RunJob] = {
    Job.TABLE_VERIFY: verify_if_due,
    Job.TABLE_LOG: table_log.run,
    Job.TABLE_OPTIMIZE: table_optimize.run,
    Job.TABLE_VACUUM: table_vacuum.run,
}


def maintain_tables(args: MaintenanceArgs) -> Iterator[JobReport]:
    """Do the actions, of which none begins after `args.until`; a failure stops no other one."""
    settings = Settings(root=args.root)
    ops, specs = OpsTables(settings.paths, keep_commits=settings.keep_commits), load_catalog(args.tables).specs
    for table, job in args.actions:
        report = args.report_of(job, table)
        job_args = args.for_table(table, args.interval, report, allow_deletes=args.allow_deletes)
        if utc_now() > args.until:
            message = f"{table}: {job} is left to the next run: the time of this one is over"
            left = JobReport(**reported_run(job, job_args), outcome=Outcome.NO_OP, message=message)
            left.save(report)
            yield left
            continue
        spec = specs[table]
        sample = spec.values_to_verify if isinstance(spec, GoldSpec) else 0
        context = JobContext(job_args.model_copy(update={"sample": sample}), opened=ops, settings=settings)
        keep_maintained(ops, table, planned_at=context.now())
        yield run_and_report(job, RUN[job], context.args, context)


if __name__ == "__main__":
    start_process()
    codes = [report.exit_code for report in maintain_tables(MaintenanceArgs.from_argv(sys.argv[1:]))]
    sys.exit(next((code for code in codes if code is not ExitCode.OK), ExitCode.OK))

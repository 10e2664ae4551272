"""Run one interval of a domain without Airflow: the same jobs, one after the other, in one driver."""

from __future__ import annotations

import sys

from include.catalog import load_catalog
from include.contracts.interval_args import IntervalArgs
from include.contracts.job_args import WRITER_OF_LAYER, Job
from include.contracts.job_report import JobReport
from include.control.records import Records
from include.errors import ExitCode, Outcome
from include.paths import LakehousePaths
from include.specs.refused import RefusedSpec, StatedSpec
from spark_jobs.jobs import bronze_ingest, gold_aggregate, silver_merge
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import RunJob, run_and_report, start_process

RUN: dict[Job, RunJob] = {
    Job.BRONZE_INGEST: bronze_ingest.run,
    Job.SILVER_MERGE: silver_merge.run,
    Job.GOLD_AGGREGATE: gold_aggregate.run,
}


def run_interval(args: IntervalArgs) -> list[JobReport]:
    """Run the tables in build order; a table whose source failed or was refused is not run, and says so."""
    reports: dict[str, JobReport] = {}
    records = Records(LakehousePaths(args.root))
    for spec in load_catalog(args.tables).stated_in(args.domain):
        if not args.table or spec.table in args.table:
            reports[spec.table] = _run_table(args, spec, reports, records)
    return list(reports.values())


def _run_table(args: IntervalArgs, spec: StatedSpec, reports: dict[str, JobReport], records: Records) -> JobReport:
    job, job_args = WRITER_OF_LAYER[spec.layer], args.for_table(spec.table)
    awaited = () if isinstance(spec, RefusedSpec) else spec.source_tables
    blocked_by = [table for table in awaited if table in reports and not _may_go_on(reports[table])]
    context = JobContext(job_args, opened=records)
    return run_and_report(job, _blocked(job, blocked_by) if blocked_by else RUN[job], job_args, context)


def _may_go_on(report: JobReport) -> bool:
    return report.exit_code is ExitCode.OK and not any(check.refuses for check in report.checks)


def _blocked(job: Job, by: list[str]) -> RunJob:
    def report(context: JobContext) -> JobReport:
        return JobReport(
            job=job.value,
            table=context.args.table,
            outcome=Outcome.NOT_READY,
            message=f"{context.args.table} was not run: {', '.join(by)} failed or was refused; see its own line",
            interval=context.args.interval,
            run_id=context.args.run_id,
        )

    return report


if __name__ == "__main__":
    start_process()
    worst = [report.exit_code for report in run_interval(IntervalArgs.from_argv(sys.argv[1:]))]
    sys.exit(next((code for code in worst if code is not ExitCode.OK), ExitCode.OK))

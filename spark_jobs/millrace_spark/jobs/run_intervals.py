"""Run intervals of a domain without Airflow: the same jobs, one after the other, in one driver."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from millrace.catalog import load_catalog
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import WRITER_OF_LAYER, Job
from millrace.contracts.job.blocked import blocked_message
from millrace.contracts.job.interval_args import CONTINUE_AFTER, IntervalsArgs
from millrace.contracts.job.report import JobReport, reported_run
from millrace.control.ops_tables import OpsTables
from millrace.errors import ExitCode, NotDeliveredError, NotReadyError, Outcome
from millrace.settings import Settings
from millrace.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec
from millrace_spark.jobs import bronze_ingest, gold_aggregate, silver_merge
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import RunJob, run_and_report, start_process

RUN: dict[Job, RunJob] = {
    Job.BRONZE_INGEST: bronze_ingest.run,
    Job.SILVER_MERGE: silver_merge.run,
    Job.GOLD_AGGREGATE: gold_aggregate.run,
}


def run_intervals(args: IntervalsArgs) -> Iterator[JobReport]:
    """Run the tables of each interval in build order, up to the first interval that does not end well.

    A table whose source failed or was refused does not run, and its report says why. An invalid spec fails its own
    table in each interval, but no other table.
    """
    catalog = load_catalog(args.tables)
    settings = Settings(root=args.root)
    ops = OpsTables(settings.paths, keep_commits=settings.keep_commits)
    specs = [spec for spec in catalog.of_domain(args.domain) if not args.table or spec.table in args.table]
    for interval in args.intervals:
        reports: dict[str, JobReport] = {}
        for spec in specs:
            reports[spec.table] = _run_table(args, spec, interval, reports, ops, settings)
            yield reports[spec.table]
        failed = [report for report in reports.values() if not (_may_go_on(report) or report.waits_for)]
        if not all(report.exit_code in CONTINUE_AFTER and not _refusals(report) for report in failed):
            return


def _run_table(
    args: IntervalsArgs,
    spec: MaybeInvalidSpec,
    interval: Interval,
    reports: dict[str, JobReport],
    ops: OpsTables,
    settings: Settings,
) -> JobReport:
    job, report = WRITER_OF_LAYER[spec.layer], args.report_of(interval, spec.table)
    job_args = args.for_table(spec.table, interval, report, reprocess=args.reprocess, allow_deletes=args.allow_deletes)
    context = JobContext(job_args, opened=ops, settings=settings)
    awaited = () if isinstance(spec, InvalidSpec) else spec.upstream_tables
    sources = [reports[table] for table in awaited if table in reports]
    failed = {source.table: _cause(source) for source in sources if not _may_go_on(source)}
    this_run = reported_run(job, job_args)

    def run(context: JobContext) -> JobReport:
        if failed:
            message = blocked_message(spec.table, failed)
            return JobReport(**this_run, outcome=Outcome.NOT_READY, message=message, waits_for=tuple(failed))
        try:
            return RUN[job](context)
        except NotReadyError as error:
            # A source that was skipped is empty for the same reason: its landing folder does not exist.
            is_missing = isinstance(error, NotDeliveredError) or any(source.skipped for source in sources)
            if not (args.skip_missing and is_missing):
                raise
            return JobReport(**this_run, outcome=Outcome.NO_OP, message=str(error), skipped=True)

    return run_and_report(job, run, job_args, context)


def _may_go_on(report: JobReport) -> bool:
    return report.exit_code is ExitCode.OK and not _refusals(report)


def _refusals(report: JobReport) -> list[str]:
    return [f"{check.rule}: {check.reason or 'no reason stated'}" for check in report.checks if check.refuses]


def _cause(report: JobReport) -> str:
    """Return the message of a table that failed, or the rules that refused it."""
    refused = _refusals(report)
    return f"{report.table} was refused by {'; '.join(refused)}" if refused else report.message


if __name__ == "__main__":
    start_process()
    codes = [report.exit_code for report in run_intervals(IntervalsArgs.from_argv(sys.argv[1:]))]
    sys.exit(next((code for code in codes if code is not ExitCode.OK), ExitCode.OK))

"""Run one interval of a domain without Airflow: the same jobs, one after the other, in one driver."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict
from pydantic_settings import CliApp

from include.catalog import load_catalog
from include.contracts.interval import Instant
from include.contracts.job_args import WRITER_OF_LAYER, Job, JobArgs
from include.contracts.job_report import JobReport
from include.contracts.table_spec import AnySpec
from include.errors import ExitCode, Outcome
from spark_jobs.jobs import bronze_ingest, gold_aggregate, silver_merge
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import RunJob, log_to_stderr, run_and_report

RUN: dict[Job, RunJob] = {
    Job.BRONZE_INGEST: bronze_ingest.run,
    Job.SILVER_MERGE: silver_merge.run,
    Job.GOLD_AGGREGATE: gold_aggregate.run,
}


class IntervalArgs(BaseModel):
    """What to run.

    Attributes:
        domain: the domain whose tables are run, in build order.
        interval_start: start of the interval (UTC, inclusive).
        interval_end: end of the interval (UTC, exclusive).
        run_id: who asked.
        root: the lakehouse root.
        landing: the landing root.
        tables: the folder of the table specs.
        reports: folder that gets one report a table, `<table>.json`.
        table: only these tables; all of the domain when left out.
        reprocess: read the interval's bronze rows again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    domain: str
    interval_start: Instant
    interval_end: Instant
    run_id: str
    root: Path
    landing: Path
    tables: Path
    reports: Path
    table: tuple[str, ...] = ()
    reprocess: bool = False

    def to_argv(self) -> list[str]:
        """The arguments as a command line."""
        return CliApp.serialize(self)

    @classmethod
    def from_argv(cls, argv: list[str]) -> Self:
        """The arguments that a command line states.

        Raises:
            SystemExit: with a usage message, when an argument is missing, unknown or wrong.
        """
        return CliApp.run(cls, cli_args=argv)

    def for_table(self, table: str) -> JobArgs:
        """The arguments of the job of one table."""
        common = self.model_dump(exclude={"domain", "reports", "table"})
        return JobArgs(**common, table=table, report=self.reports / f"{table}.json")


def run_interval(args: IntervalArgs) -> list[JobReport]:
    """Run the tables in build order; a table whose source failed or was refused is not run, and says so."""
    reports: dict[str, JobReport] = {}
    for spec in load_catalog(args.tables).of_domain(args.domain):
        if not args.table or spec.table in args.table:
            reports[spec.table] = _run_table(args, spec, reports)
    return list(reports.values())


def _run_table(args: IntervalArgs, spec: AnySpec, reports: dict[str, JobReport]) -> JobReport:
    job, job_args = WRITER_OF_LAYER[spec.layer], args.for_table(spec.table)
    blocked_by = [table for table in spec.source_tables if table in reports and not _may_go_on(reports[table])]
    return run_and_report(job, _blocked(job, blocked_by) if blocked_by else RUN[job], job_args)


def _may_go_on(report: JobReport) -> bool:
    return report.exit_code is ExitCode.OK and all(check.passed or check.action == "warn" for check in report.checks)


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
    log_to_stderr()
    worst = [report.exit_code for report in run_interval(IntervalArgs.from_argv(sys.argv[1:]))]
    sys.exit(next((code for code in worst if code is not ExitCode.OK), ExitCode.OK))

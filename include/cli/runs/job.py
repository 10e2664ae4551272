"""One job in a driver of its own, for a command: run to its end, and shown."""

from __future__ import annotations

from collections.abc import Callable

from include.cli.output import console
from include.cli.runs.driver import run_job
from include.cli.runs.reports import ending, failure_lines
from include.contracts.interval import Interval
from include.contracts.job.args import Job, JobArgs
from include.contracts.job.report import JobReport
from include.contracts.job.request_file import RequestFile
from include.errors import ExitCode
from include.settings import Settings


def requested(
    table: str, settings: Settings, interval: Interval, run_id: str, request: RequestFile, *, dry_run: bool
) -> JobArgs:
    """The arguments of a job that reads from a file what is asked of it; the file lies beside its report."""
    folder = settings.run_paths.reports / run_id
    return JobArgs(
        table=table,
        interval_start=interval.start,
        interval_end=interval.end,
        run_id=run_id,
        root=settings.root,
        landing=settings.landing,
        tables=settings.tables,
        report=folder / f"{table}.json",
        request=request.save(folder / f"{table}.request.json"),
        dry_run=dry_run,
    )


def run_shown(
    settings: Settings, arguments: JobArgs, job: Job, shown: Callable[[JobReport], None], doing: str = "starting Spark"
) -> ExitCode:
    """Run the job, and show how it ended: what went wrong on stderr, with the driver's log.

    Args:
        settings: where everything lies.
        arguments: of the job.
        job: the job.
        shown: shows a report.
        doing: what a person reads meanwhile.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    with console().status(f"{arguments.table}: {doing}"):
        report, end = run_job(settings, arguments, job)
    if report is None:
        said = f"The Spark driver ended with exit code {end.exit_code}:\n{end.last_words}\ndriver log: {end.log}"
        console(stderr=True).print(said, markup=False)
        return ExitCode.FAILED
    shown(report)
    code = ending(report)
    if code is not ExitCode.OK:
        lines = "\n".join((*failure_lines([report]), f"driver log: {end.log}"))
        console(stderr=True).print(lines, markup=False, soft_wrap=True)
    return code

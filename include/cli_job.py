"""One job in a driver of its own, for a command: run to its end, and shown."""

from __future__ import annotations

from collections.abc import Callable

from include.cli_driver import run_job
from include.cli_output import console
from include.cli_reports import ending, failure_lines
from include.contracts.job_args import Job, JobArgs
from include.contracts.job_report import JobReport
from include.errors import ExitCode
from include.settings import Settings


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

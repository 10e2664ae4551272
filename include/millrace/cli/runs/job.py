"""Run the job of a person's request in its own driver, and show how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from millrace.cli.catalog import command_catalog
from millrace.cli.listings.as_json import show_listing
from millrace.cli.output import console, show, show_problem
from millrace.cli.runs.deciding_alone import AskingDag, alone, decided_alone
from millrace.cli.runs.driver import run_job
from millrace.cli.runs.reports import ending, failure_lines, note_lines
from millrace.cli.selection import new_run_id, parse_intervals, today
from millrace.cli.views import MISSING, new_table
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import RebuildRequest, RequestFile
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.errors import ExitCode, UnknownNameError
from millrace.settings import Settings


def run_and_show(
    table: str,
    settings: Settings,
    interval: Interval,
    request: RequestFile | None,
    job: Job,
    show_report: Callable[[JobReport], None],
    status: str = "starting Spark",
    *,
    dry_run: bool = False,
    sample: int = 0,
) -> ExitCode:
    """Run the job, and show how it ended, by `show_report`; failures and the driver's log go to stderr.

    The job reads its request, if there is one, from a file next to its report. A file with values of rows
    is gone when the job has ended.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    run_id = new_run_id(datetime.now(UTC))
    folder = settings.run_paths.reports / run_id
    arguments = JobArgs(
        table=table,
        interval_start=interval.start,
        interval_end=interval.end,
        run_id=run_id,
        root=settings.root,
        landing=settings.landing,
        tables=settings.tables,
        report=folder / f"{table}.json",
        request=request.save(folder / f"{table}.request.json") if request else None,
        dry_run=dry_run,
        sample=sample,
    )
    try:
        with console().status(f"{table}: {status}"):
            report, end = run_job(settings, arguments, job)
    finally:
        if request and request.has_values and arguments.request:
            arguments.request.unlink(missing_ok=True)
    if report is None:
        show_problem(f"The Spark driver ended with exit code {end.exit_code}:\n{end.last_lines}\ndriver log: {end.log}")
        return ExitCode.FAILED
    show_report(report)
    code = ending(report)
    if code is not ExitCode.OK:
        show_problem("\n".join((*failure_lines([report], settings.paths), f"driver log: {end.log}")))
    return code


def rebuild_table(table: str, request: RebuildRequest, settings: Settings, *, dry_run: bool) -> ExitCode:
    """Start, resume, cancel or undo the rebuild of a table in its own driver, and show how it ended.

    Nobody need approve a cancel or an undo: no form offers them.

    Raises:
        ApprovalError: a second person has to approve the rebuild.
        SpecError: a spec is wrong, or there is no such table.
        SparkUnavailableError: there is no Spark to start.
    """
    command_catalog(settings.tables).spec(table)
    asks_nobody = dry_run or request.cancel or request.undo
    person = alone() if asks_nobody else decided_alone(AskingDag.REBUILD, settings)
    request = request.model_copy(update={"said_by": person})
    (interval,) = parse_intervals(today())
    return run_and_show(table, settings, interval, request, Job.TABLE_REBUILD, _show, "rebuilding it", dry_run=dry_run)


def verify_table(table: str, sample: int, settings: Settings, *, as_json: bool) -> ExitCode:
    """Verify a gold table in its own driver, and show the groups that differ; `sample` is 0 for all groups.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        UnknownNameError: it is not computed from its sources alone: bronze, and silver without a query.
        SparkUnavailableError: there is no Spark to start.
    """
    if not isinstance(command_catalog(settings.tables).spec(table), GoldSpec):
        raise UnknownNameError(
            f"{table} is merged from events, and is not compared with them",
            "Only gold tables, and silver tables with a query, are computed again from their sources.",
        )
    (interval,) = parse_intervals(today())

    def show_report(report: JobReport) -> None:
        if not report.details:
            return  # nothing was compared
        differences = report.details["differences"]
        view = difference_table(differences) if differences else report.message
        show_listing(differences, lambda: view, *note_lines([report]), as_json=as_json)

    return run_and_show(
        table, settings, interval, None, Job.TABLE_VERIFY, show_report, "comparing it with its sources", sample=sample
    )


def difference_table(differences: Sequence[dict[str, Any]]) -> Table:
    """Return a line per difference: the group, the column, the stored value and the computed one."""
    shown = new_table("group", "column", "in the table", "computed")
    for each in differences:
        group = ", ".join(f"{name} {MISSING if value is None else value}" for name, value in each["group"].items())
        values = (MISSING if value is None else value for value in (each["stored"], each["computed"]))
        shown.add_row(*map(Text, (group, each["column"] or MISSING, *values)))  # as text, so that no markup is read
    return shown


def _show(report: JobReport) -> None:
    if report.exit_code is ExitCode.OK:
        show(report.message, *note_lines([report]))

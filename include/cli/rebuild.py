"""`lakehouse rebuild`: send a request to a job in its own driver, and show how it ended."""

from __future__ import annotations

from include.cli.catalog import command_catalog
from include.cli.output import show
from include.cli.runs.job import run_and_show
from include.cli.runs.reports import note_lines
from include.cli.selection import parse_intervals, today
from include.contracts.job.args import Job
from include.contracts.job.rebuild_request import RebuildRequest
from include.contracts.job.report import JobReport
from include.errors import ExitCode
from include.settings import Settings


def rebuild_table(table: str, request: RebuildRequest, settings: Settings, *, dry_run: bool) -> ExitCode:
    """Start, resume or cancel the rebuild of a table in its own driver, and show how it ended.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        SparkUnavailableError: there is no Spark to start.
    """
    command_catalog(settings.tables).spec(table)
    (interval,) = parse_intervals(today())
    return run_and_show(table, settings, interval, request, Job.TABLE_REBUILD, _show, "rebuilding it", dry_run=dry_run)


def _show(report: JobReport) -> None:
    if report.exit_code is ExitCode.OK:
        show(report.message, *note_lines([report]))

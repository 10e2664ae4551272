"""`lakehouse rebuild`: send a request to a job in its own driver, and show how it ended."""

from __future__ import annotations

from datetime import UTC, datetime

from include.cli.catalog import command_catalog
from include.cli.output import show
from include.cli.runs.job import request_arguments, run_and_show
from include.cli.runs.reports import note_lines
from include.cli.runs.run_id import new_run_id
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
    (interval,), run_id = parse_intervals(today()), new_run_id(datetime.now(UTC))
    arguments = request_arguments(table, settings, interval, run_id, request, dry_run=dry_run)
    return run_and_show(settings, arguments, Job.TABLE_REBUILD, _show, "rebuilding it")


def _show(report: JobReport) -> None:
    if report.exit_code is ExitCode.OK:
        show(report.message, *note_lines([report]))

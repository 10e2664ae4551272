"""`lakehouse repair delete` and `replace`: the plan in words, and its execution, each in its own driver."""

from __future__ import annotations

from millrace.cli.catalog import command_catalog
from millrace.cli.listings.as_json import show_listing
from millrace.cli.output import show
from millrace.cli.runs.deciding_alone import AskingDag, decided_alone
from millrace.cli.runs.job import run_and_show
from millrace.cli.runs.reports import note_lines
from millrace.cli.selection import parse_intervals, today
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import RepairRequest
from millrace.control.ops_tables import OpsTables
from millrace.errors import ExitCode, RepairError
from millrace.overview.lineage.restricted import Restrictions
from millrace.repair.row_repair import asked_row_repair, key_lines
from millrace.settings import Settings


def repair_rows(table: str, request: RepairRequest, settings: Settings, *, as_json: bool) -> ExitCode:
    """Show what a repair would change, and the command that does exactly that; with the id of a plan, do it.

    Raises:
        ApprovalError: a second person has to approve it.
        RepairError: the table or the condition does not allow it, or no reason is stated.
        SpecError: the spec is wrong, or there is no such table.
        NotReadyError: there is no table.
        SparkUnavailableError: there is no Spark to start.
    """
    catalog = command_catalog(settings.tables)
    asked_row_repair(table, request, catalog, OpsTables(settings.paths), Restrictions(catalog.specs).of(table))
    is_dry_run = not request.plan
    if not is_dry_run:
        if not request.why.strip():
            raise RepairError(
                f"{table}: why is it repaired?", "State the reason, for those who look at it later: --why."
            )
        request = request.model_copy(update={"said_by": decided_alone(AskingDag.REPAIR, settings)})

    def show_plan(report: JobReport) -> None:
        if facts := report.details:
            samples, command = facts["found"]["samples"], facts["command"]
            lines = (report.message, *key_lines(samples), f"To do exactly this: {command} --why ...")
            show_listing([facts], lambda: "\n".join(lines), as_json=as_json)

    def show_end(report: JobReport) -> None:
        if report.exit_code is ExitCode.OK:
            follow = "Run the tables that read it. What they cannot follow, they say, with the rebuild that helps."
            show(report.message, *note_lines([report]), follow)

    shown, status = (show_plan, "counting its rows") if is_dry_run else (show_end, "repairing it")
    (interval,) = parse_intervals(today())
    return run_and_show(table, settings, interval, request, Job.TABLE_REPAIR, shown, status, dry_run=is_dry_run)

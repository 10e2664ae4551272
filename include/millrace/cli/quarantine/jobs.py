"""`lakehouse quarantine fix` and `replay`: send a request to a job in its own driver, then run downstream tables."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer
from rich.text import Text

from millrace.cli.catalog import command_catalog
from millrace.cli.output import show
from millrace.cli.quarantine.listing import Days, require_selection, require_status, row_filter
from millrace.cli.runs.deciding_alone import AskingDag, decided_alone
from millrace.cli.runs.intervals import run_selection
from millrace.cli.runs.job import run_and_show
from millrace.cli.runs.reports import note_lines, report_table
from millrace.cli.runs.table_plans import plan_tables
from millrace.cli.selection import Selection, with_downstream
from millrace.cli.views import new_table
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import QuarantineRequest
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.ledger.ledger import Ledger
from millrace.control.planning.complete_batches import replay_interval
from millrace.control.planning.source_ranges import newest_interval
from millrace.control.planning.stream_positions import stream_position
from millrace.control.quarantine.edited_rows import edited_rows
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import SUMMARY, StoredRows
from millrace.errors import BadInputError, ExitCode
from millrace.settings import Settings


def request_for(
    table: str,
    settings: Settings,
    ids: Sequence[str],
    days: Days,
    reason: str,
    *,
    everything: bool,
    assign: Sequence[str] | None,
    edited: Path | None,
    why: str,
    statuses: Sequence[RowStatus] = (),
) -> QuarantineRequest:
    """Return the request that the options of a command state; `statuses` are those of the waiting rows, if not any.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        BadInputError: it is a gold table, the file of edited rows is not valid, or an expression is not allowed.
        typer.BadParameter: no option selects rows, or an option is not valid.
    """
    if isinstance(command_catalog(settings.tables).spec(table), GoldSpec):
        raise BadInputError(f"{table} refuses no row: it is computed from its sources, fix the rows there")
    if settled := next((status for status in statuses if status not in PENDING), None):
        raise typer.BadParameter(f"--status {settled}: only a row that is {' or '.join(PENDING)} can be tried")
    if statuses and (assign or edited):
        raise typer.BadParameter("--status is for a replay without a fix, which changes the status of the rows")
    if edited and (assign or ids or days[0] or reason or everything):
        raise typer.BadParameter("--rows alone selects the rows and states their changes")
    text = edited.read_text(encoding="utf-8") if edited else ""
    row_ids = [row.id for row in edited_rows(text)] if edited else list(ids)
    require_selection(row_ids, days, reason, everything=everything or bool(statuses))
    selected = row_filter(table, settings, row_ids, days, reason, statuses or PENDING)
    if selected.ids:
        in_any_status = selected.model_copy(update={"statuses": tuple(RowStatus)})
        require_status(quarantined_rows(StoredRows(table, settings.paths), in_any_status, SUMMARY), PENDING, "tried")
    sql_of_column = dict(map(assignment, assign or ()))
    if sql_of_column:
        from millrace.sql.closed_expression import require_closed

        for column, sql in sql_of_column.items():
            require_closed(column, sql)
    return QuarantineRequest(rows=selected, assign=sql_of_column, edited=text, said_by=getpass.getuser(), why=why)


def assignment(text: str) -> tuple[str, str]:
    """Return the column and the SQL of `--set`.

    >>> assignment("amount = abs(amount)")
    ('amount', 'abs(amount)')

    Raises:
        typer.BadParameter: it is not an assignment.
    """
    column, equals, sql = (part.strip() for part in text.partition("="))
    if not (column.isidentifier() and equals and sql):
        raise typer.BadParameter(f'{text!r} is not an assignment; write --set "amount = abs(amount)"')
    return column, sql


def run_request(table: str, request: QuarantineRequest, settings: Settings, job: Job, *, dry_run: bool) -> ExitCode:
    """Run the job in its own driver, and show how it ended.

    Raises:
        ApprovalError: it changes values, and a second person has to approve that.
        SparkUnavailableError: there is no Spark to start.
    """
    if request.has_fixes and not dry_run:
        request = request.model_copy(update={"said_by": decided_alone(AskingDag.FIX, settings)})
    paths, spec = settings.paths, command_catalog(settings.tables).spec(table)
    interval = replay_interval(spec, quarantined_rows(StoredRows(table, paths), request.rows, SUMMARY), paths)
    if interval is None:
        show(f"No waiting row of {table} is selected: no Spark was started.")
        return ExitCode.OK
    return run_and_show(table, settings, interval, request, job, _show, dry_run=dry_run)


def run_downstream(table: str, settings: Settings) -> ExitCode:
    """Run the tables that read the table, directly or not, if they have anything new.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    selection = downstream_selection(table, settings)
    return run_selection(selection, settings, reprocess=False) if selection else ExitCode.OK


def downstream_selection(table: str, settings: Settings) -> Selection | None:
    """Return the tables that read the table, for the newest interval that they have not read; None if there are none.

    If they have read everything, the interval is that of the last batch of the table.
    """
    catalog, paths, ledger = command_catalog(settings.tables), settings.paths, Ledger(settings.paths)
    specs = with_downstream(catalog, catalog.spec(table).domain, {table})[1:]
    position = stream_position(catalog.spec(table), paths, ledger)
    if not specs or position is None or position.last is None:
        return None
    intervals = (position.last.intent.interval,)
    selection = Selection(catalog, specs[0].domain, specs, intervals, names_tables=True)
    plans = plan_tables(selection, settings, reprocess=False)
    unread = (span for plan in plans if plan.advice for span in plan.advice.sources.items())
    newest = newest_interval(unread, paths, ledger)
    return replace(selection, intervals=(newest,)) if newest else selection


def _show(report: JobReport) -> None:
    if rows := report.details.get("rows"):
        table = new_table("id", "would be", "reasons", "row")
        for row in rows:
            reasons = "\n".join(map(str, row["reasons"])) if isinstance(row["reasons"], list) else ""
            table.add_row(str(row["id"]), str(row["fate"]), Text(reasons), Text(str(row["received"])))
        show(table)
    if report.rows.read:
        show(report_table([report], [report.table]))
    # `run_and_show` shows why another one failed.
    if report.exit_code is ExitCode.OK:
        show(report.message, *note_lines([report]))

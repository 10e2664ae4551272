"""What `lakehouse quarantine fix` and `replay` do: a request to a job of its own driver, then the tables below."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from include.cli.catalog import command_catalog
from include.cli.output import show
from include.cli.quarantine.listing import Days, chosen, require_selection, require_standing
from include.cli.runs.intervals import run_selection
from include.cli.runs.job import requested, run_shown
from include.cli.runs.reports import note_lines, report_table
from include.cli.runs.run_id import new_run_id
from include.cli.selection import Selection, parse_intervals, selection_below, today
from include.cli.views import new_table
from include.contracts.job.args import Job
from include.contracts.job.quarantine_request import QuarantineRequest
from include.contracts.job.report import JobReport
from include.contracts.row_status import PENDING, RowStatus
from include.contracts.spec.table_spec import GoldSpec
from include.control.planning.replay_advice import replay_interval
from include.control.quarantine.edited_rows import edited_rows
from include.control.quarantine.rows import SUMMARY, quarantined_rows
from include.errors import BadInputError, ExitCode
from include.paths import LakehousePaths
from include.settings import Settings


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
) -> QuarantineRequest:
    """What the options of a command ask for.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        BadInputError: the file of edited rows is none, or an expression may not be worked out.
        typer.BadParameter: nothing says which rows, or an option is not one.
    """
    require_refusing(table, settings)
    if edited and (assign or ids or days[0] or reason or everything):
        raise typer.BadParameter("--rows says by itself which rows are meant, and what is changed in them")
    text = edited.read_text(encoding="utf-8") if edited else ""
    named = [row.id for row in edited_rows(text)] if edited else list(ids)
    require_selection(named, days, reason, everything=everything)
    paths = LakehousePaths(settings.root)
    wanted = chosen(table, settings, named, days, reason, PENDING)
    if wanted.ids:
        any_of_them = wanted.model_copy(update={"statuses": tuple(RowStatus)})
        require_standing(quarantined_rows(table, paths, any_of_them, SUMMARY), PENDING, "tried")
    return QuarantineRequest(
        rows=wanted,
        assign=_closed_expressions(map(assignment, assign or ())),
        edited=text,
        said_by=getpass.getuser(),
        why=why,
    )


def _closed_expressions(stated: Iterable[tuple[str, str]]) -> dict[str, str]:
    assigned = dict(stated)
    if assigned:
        from include.sql.closed_expression import require_closed

        for column, sql in assigned.items():
            require_closed(column, sql)
    return assigned


def assignment(text: str) -> tuple[str, str]:
    """The column and the SQL of `--set`.

    >>> assignment("amount = abs(amount)")
    ('amount', 'abs(amount)')

    Raises:
        typer.BadParameter: it is no assignment.
    """
    column, equals, sql = (part.strip() for part in text.partition("="))
    if not (column.isidentifier() and equals and sql):
        raise typer.BadParameter(f'{text!r} is no assignment; write --set "amount = abs(amount)"')
    return column, sql


def ask(table: str, request: QuarantineRequest, settings: Settings, job: Job, *, dry_run: bool) -> ExitCode:
    """Run the job in a driver of its own, and show how it ended.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    run_id = new_run_id(datetime.now(UTC))
    paths, spec = LakehousePaths(settings.root), command_catalog(settings.tables).spec(table)
    interval = replay_interval(spec, quarantined_rows(table, paths, request.rows, SUMMARY), paths)
    if interval is None:
        show(f"No row of {table} that waits in quarantine is meant: no Spark was started.")
        return ExitCode.OK
    return run_shown(settings, requested(table, settings, interval, run_id, request, dry_run=dry_run), job, _show)


def run_below(table: str, settings: Settings) -> ExitCode:
    """Run the tables that read the table, directly or not; none is started where nothing is new.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    catalog = command_catalog(settings.tables)
    specs = selection_below(catalog, catalog.spec(table).domain, {table})[1:]
    if not specs:
        return ExitCode.OK
    intervals = parse_intervals(today())
    selection = Selection(catalog, specs[0].domain, tuple(specs), intervals, names_tables=True)
    return run_selection(selection, settings, reprocess=False)


def require_refusing(table: str, settings: Settings) -> None:
    """Whether the table refuses rows at all.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        BadInputError: it is one of gold.
    """
    if isinstance(command_catalog(settings.tables).spec(table), GoldSpec):
        raise BadInputError(f"{table} refuses no row: gold is worked out of silver, mend the rows there")


def _show(report: JobReport) -> None:
    if rows := report.details.get("rows"):
        show(_verdict_table(rows))
    if report.rows.read:
        show(report_table([report], [report.table]))
    show(report.message, *note_lines([report]))


def _verdict_table(rows: Sequence[dict[str, object]]) -> Table:
    """What the rules make of each row."""
    table = new_table("id", "would be", "reasons", "row")
    for row in rows:
        reasons = row["reasons"]
        why = "\n".join(map(str, reasons)) if isinstance(reasons, list) else ""
        table.add_row(str(row["id"]), str(row["fate"]), Text(why), Text(str(row["received"])))
    return table

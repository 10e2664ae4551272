"""`lakehouse quarantine`: show the rows that tables refused, and work on them.

As in `millrace.cli.app`, commands import what they need when they run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millrace.cli.completion import domain_names, table_names
from millrace.cli.listings.as_json import AsJson, show_listing
from millrace.cli.output import missing_root, show
from millrace.contracts.counted import counted
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.errors import ExitCode

quarantine = typer.Typer(no_args_is_help=True, help="Show the rows that tables refused, fix them, replay them.")

Table = Annotated[str, typer.Argument(help="The table that refused the rows.", autocompletion=table_names)]
Ids = Annotated[list[str] | None, typer.Argument(help="Rows, by the beginning of their ids.")]
Day = Annotated[str | None, typer.Option("--interval", help="Only rows of this UTC day, or of start/end.")]
LastDay = Annotated[str | None, typer.Option("--to", help="The last day, for several days.")]
Reason = Annotated[str, typer.Option(help="Only rows with a reason that contains this text.")]
Everything = Annotated[bool, typer.Option("--all", help="Every waiting row, if no other option selects rows.")]
Why = Annotated[str, typer.Option(help="The reason, for those who look at the row later.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen to the rows, and write nothing.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help='Fix a column: "amount = abs(amount)", Spark SQL over the row as it was received; may be repeated.',
    ),
]
Edited = Annotated[
    Path | None, typer.Option("--rows", exists=True, dir_okay=False, help="Edited rows, as `show --json` prints them.")
]
Statuses = Annotated[
    list[RowStatus] | None,
    typer.Option(
        metavar="STATUS",
        help=f"Only rows with this status: {', '.join(RowStatus)}; may be repeated. By default open and fixed.",
    ),
]


@quarantine.command("list")
def quarantine_list(
    domain: Annotated[
        str | None, typer.Option(help="Only tables of this business area.", autocompletion=domain_names)
    ] = None,
    status: Statuses = None,
    as_json: AsJson = False,
) -> None:
    """List why rows are in quarantine: each reason with the number, the age and the status of its rows."""
    from millrace.cli.quarantine.listing import overview, refusal_table
    from millrace.settings import Settings

    settings = Settings()
    result = overview(settings, domain, status or PENDING)
    nothing = "No row is in quarantine." if status is None else "No row in quarantine has this status."
    items = [{"table": table, **vars(refusal)} for table, reasons in result.refusals.items() for refusal in reasons]
    remarks = (*result.settled_line(), *result.warnings, *missing_root(settings.root))
    show_listing(items, lambda: refusal_table(result.refusals) if items else nothing, *remarks, as_json=as_json)
    raise typer.Exit(ExitCode.OK if result.is_whole else ExitCode.FAILED)


@quarantine.command("show")
def quarantine_show(
    table: Table,
    ids: Ids = None,
    interval: Day = None,
    to: LastDay = None,
    reason: Reason = "",
    status: Statuses = None,
    limit: Annotated[int, typer.Option(min=1, help="The most rows to show, the newest batch first.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="As JSON lines, to edit for `fix --rows`.")] = False,
) -> None:
    """Show quarantined rows: their origin, why they were refused, and their status; by id with their history."""
    from millrace.cli.catalog import command_catalog
    from millrace.cli.quarantine.listing import edit_lines, histories, row_filter, row_table, waits_of
    from millrace.control.quarantine.fixable_columns import fixable_columns
    from millrace.control.quarantine.rows import count_rows, newest_rows, quarantined_rows
    from millrace.control.quarantine.stored_rows import StoredRows
    from millrace.settings import Settings

    settings, statuses = Settings(), status or (RowStatus if ids else PENDING)
    selected = row_filter(table, settings, ids or (), (interval, to), reason, statuses)
    rows = StoredRows(table, settings.paths)
    if json:
        columns = fixable_columns(command_catalog(settings.tables).specs.get(table), settings.paths)
        typer.echo("\n".join(edit_lines(quarantined_rows(rows, selected), columns)))
    elif ids:
        show(*histories(table, quarantined_rows(rows, selected), settings))
    else:
        shown, count = newest_rows(rows, selected, limit), count_rows(rows, selected)
        nothing = f"No row of {table} in quarantine is of this kind; `lakehouse quarantine list` shows what there is."
        table_of_rows = row_table(shown, waits_of(table, shown, settings))
        found = (table_of_rows, f"{len(shown):,} of {counted(count, 'quarantined row')} of {table}")
        show(*(found if count else (nothing, *missing_root(settings.root))))


@quarantine.command("fix")
def quarantine_fix(
    table: Table,
    ids: Ids = None,
    assign: Set = None,
    edited: Edited = None,
    interval: Day = None,
    to: LastDay = None,
    reason: Reason = "",
    everything: Everything = False,
    why: Why = "",
    dry_run: DryRun = False,
) -> None:
    """Fix quarantined rows, by SQL or as edited rows, and show what the rules say about them. `replay` loads them."""
    from millrace.cli.quarantine.jobs import request_for, run_request
    from millrace.contracts.job.args import Job
    from millrace.settings import Settings

    settings = Settings()
    request = request_for(
        table, settings, ids or (), (interval, to), reason, everything=everything, assign=assign, edited=edited, why=why
    )
    if not request.has_fixes:
        raise typer.BadParameter('state a fix: --set "amount = abs(amount)", or --rows FILE')
    raise typer.Exit(run_request(table, request, settings, Job.QUARANTINE_FIX, dry_run=dry_run))


@quarantine.command("replay")
def quarantine_replay(
    table: Table,
    ids: Ids = None,
    assign: Set = None,
    edited: Edited = None,
    interval: Day = None,
    to: LastDay = None,
    reason: Reason = "",
    everything: Everything = False,
    status: Annotated[
        list[RowStatus] | None,
        typer.Option(metavar="STATUS", help="Only open or only fixed rows; `--status fixed` alone means all of these."),
    ] = None,
    why: Why = "",
    dry_run: DryRun = False,
    below: Annotated[bool, typer.Option(help="Run the tables that read this one afterwards.")] = True,
) -> None:
    """Try rows again, as they are or fixed: with the same rules, merge and sequence. No row is loaded twice."""
    from millrace.cli.quarantine.jobs import request_for, run_downstream, run_request
    from millrace.cli.runs.reports import worst
    from millrace.contracts.job.args import Job
    from millrace.settings import Settings

    settings = Settings()
    request = request_for(
        table,
        settings,
        ids or (),
        (interval, to),
        reason,
        everything=everything,
        assign=assign,
        edited=edited,
        why=why,
        statuses=status or (),
    )
    code = run_request(table, request, settings, Job.QUARANTINE_REPLAY, dry_run=dry_run)
    if code is ExitCode.OK and below and not dry_run:
        code = worst([code, run_downstream(table, settings)])
    raise typer.Exit(code)


@quarantine.command("discard")
def quarantine_discard(
    table: Table,
    why: Annotated[str, typer.Option(help="The reason; it is kept with the rows.")],
    ids: Ids = None,
    interval: Day = None,
    to: LastDay = None,
    reason: Reason = "",
    everything: Everything = False,
) -> None:
    """Give rows up: they stay in quarantine, but nobody is reminded of them. `reopen` reverts this."""
    from millrace.cli.quarantine.listing import decide
    from millrace.control.quarantine.events import RowEvent
    from millrace.settings import Settings

    show(decide(table, Settings(), ids or (), (interval, to), reason, RowEvent.DISCARDED, why, everything=everything))


@quarantine.command("reopen")
def quarantine_reopen(
    table: Table,
    ids: Ids = None,
    interval: Day = None,
    to: LastDay = None,
    reason: Reason = "",
    everything: Everything = False,
    why: Why = "",
) -> None:
    """Revert a discard: the rows wait again, with their fixes."""
    from millrace.cli.quarantine.listing import decide
    from millrace.control.quarantine.events import RowEvent
    from millrace.settings import Settings

    show(decide(table, Settings(), ids or (), (interval, to), reason, RowEvent.REOPENED, why, everything=everything))

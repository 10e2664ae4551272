"""`lakehouse hold`: keep all versions of tables until somebody releases them.

As in `millrace.cli.app`, commands import what they need when they run.
"""

from __future__ import annotations

from typing import Annotated

import typer

from millrace.cli.completion import table_names
from millrace.cli.listings.as_json import AsJson, show_listing
from millrace.cli.output import missing_root, show
from millrace.contracts.counted import counted

hold = typer.Typer(no_args_is_help=True, help="Keep all versions of tables, as a legal hold asks; release them.")

Name = Annotated[str, typer.Argument(help="The name of the hold, such as that of the case.")]
Why = Annotated[str, typer.Option(help="The reason; it is recorded, and shown with the table.")]


@hold.command("set")
def hold_set(
    name: Name,
    tables: Annotated[list[str], typer.Argument(help="The tables.", autocompletion=table_names)],
    why: Why,
) -> None:
    """Hold tables, also dropped ones: from now on maintenance deletes no file, no deleted key and no log of them."""
    from getpass import getuser

    from millrace.cli.catalog import command_catalog
    from millrace.cli.selection import new_run_id
    from millrace.clock import utc_now
    from millrace.control.log.stored_tables import tables_in
    from millrace.control.maintenance.holding import hold_tables
    from millrace.control.ops_tables import OpsTables
    from millrace.control.repair.dropped import dropped_tables
    from millrace.settings import Settings

    settings = Settings()
    catalog = command_catalog(settings.tables)
    stored = {*tables_in(settings.paths.root), *(each.record.table for each in dropped_tables(settings.paths))}
    for table in tables:
        if table not in stored:
            catalog.require_known(table)
    ops, run_id = OpsTables(settings.paths), new_run_id(utc_now())
    hold_tables(name, tables, said_by=getuser(), why=why, run_id=run_id, ops=ops)
    show(f"{name} holds {', '.join(tables)}: nothing of them is deleted until `lakehouse hold release {name}`.")


@hold.command("release")
def hold_release(name: Name, why: Why) -> None:
    """Release all tables of a hold: the next maintenance deletes what is due."""
    from getpass import getuser

    from millrace.cli.selection import new_run_id
    from millrace.clock import utc_now
    from millrace.control.maintenance.holding import release_hold
    from millrace.control.ops_tables import OpsTables
    from millrace.errors import MillraceError
    from millrace.settings import Settings

    ops, run_id = OpsTables(Settings().paths), new_run_id(utc_now())
    tables = release_hold(name, said_by=getuser(), why=why, run_id=run_id, ops=ops)
    if not tables:
        raise MillraceError(f"No table has the hold {name!r}", "`lakehouse hold list` shows the holds.")
    show(f"{name} is released: {', '.join(tables)}.")


@hold.command("list")
def hold_list(as_json: AsJson = False) -> None:
    """List the holds: which tables, since when, by whom and why; also which tables have lost theirs."""
    from millrace.cli.catalog import command_catalog
    from millrace.cli.views import new_table
    from millrace.contracts.time_format import MINUTE
    from millrace.control.maintenance.health import LOST_HOLD
    from millrace.control.maintenance.holding import lost_holds
    from millrace.control.ops_tables import OpsTables
    from millrace.settings import Settings

    settings = Settings()
    ops, known = OpsTables(settings.paths), command_catalog(settings.tables)
    holds = ops.holds.active()
    lost = [f"{table}: {LOST_HOLD}." for table in lost_holds([*known.specs, *known.invalid], ops)]
    shown = new_table("hold", "table", "since", "by", "why")
    for each in holds:
        shown.add_row(each.name, each.table, f"{each.since:{MINUTE}}", each.said_by, each.why)
    remark = f"{counted(len({each.table for each in holds}), 'table is', 'tables are')} held"
    show_listing(holds, lambda: shown, remark, *lost, *missing_root(settings.root), as_json=as_json)

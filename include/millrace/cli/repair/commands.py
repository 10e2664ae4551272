"""The commands that repair a table; as in `millrace.cli.app`, they import what they need when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from millrace.cli.completion import table_names
from millrace.cli.listings.as_json import AsJson

repair = typer.Typer(no_args_is_help=True, help="Repair a table: first see what would change, then execute just that.")


@repair.callback()
def every_repair() -> None:
    """Keep the name of a repair a command of its own, while there is only one."""


@repair.command()
def restore(
    table: Annotated[str, typer.Argument(help="A table.", autocompletion=table_names)],
    to: Annotated[
        str, typer.Option("--to", help="A certified version, or a UTC time: what readers used then.", metavar="VERSION")
    ],
    no_reload: Annotated[
        bool, typer.Option("--no-reload", help="Bronze: do not load the landing files of undone batches again.")
    ] = False,
    execute: Annotated[
        str | None, typer.Option("--execute", metavar="ID", help="Restore as shown under this id; needs --why.")
    ] = None,
    why: Annotated[str, typer.Option(help="The reason, for those who look at it later.")] = "",
    as_json: AsJson = False,
) -> None:
    """Put the rows of an earlier certified version back on top of a table, in one commit.

    Without --execute it only shows what would change, everywhere, and ends with the id of exactly that.
    """
    from millrace.cli.repair.restore import execute_restore, show_restore
    from millrace.settings import Settings

    if execute:
        execute_restore(table, to, execute, why, Settings(), no_reload=no_reload)
    else:
        show_restore(table, to, Settings(), no_reload=no_reload, as_json=as_json)

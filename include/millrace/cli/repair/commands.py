"""The commands that repair a table; as in `millrace.cli.app`, they import what they need when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from millrace.cli.completion import table_names
from millrace.cli.listings.as_json import AsJson

repair = typer.Typer(no_args_is_help=True, help="Repair a table: first see what would change, then execute just that.")


_Table = Annotated[str, typer.Argument(help="A table of bronze or silver.", autocompletion=table_names)]
_Where = Annotated[
    str, typer.Option("--where", metavar="CONDITION", help="Which rows, such as \"day = '2026-11-20'\".")
]
_Execute = Annotated[
    str | None, typer.Option("--execute", metavar="ID", help="Do what was shown under this id; needs --why.")
]
_Why = Annotated[str, typer.Option(help="The reason, for those who look at it later.")]


@repair.command()
def restore(
    table: Annotated[str, typer.Argument(help="A table.", autocompletion=table_names)],
    to: Annotated[
        str, typer.Option("--to", help="A certified version, or a UTC time: what readers used then.", metavar="VERSION")
    ] = "",
    backup: Annotated[
        str, typer.Option("--from", help="A backup, in place of --to: its version, with what is missing.")
    ] = "",
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
    from millrace.cli.catalog import command_catalog
    from millrace.cli.repair.restore import execute_restore, show_restore
    from millrace.repair.restoring import asked_copy_back, asked_restore
    from millrace.settings import Settings

    if bool(to) is bool(backup):
        raise typer.BadParameter("Write either --to VERSION or --from FOLDER.")
    settings = Settings()
    catalog = command_catalog(settings.tables)
    if backup:
        asked = asked_copy_back(table, backup, catalog, no_reload=no_reload)
    else:
        asked = asked_restore(table, to, catalog, settings.paths, no_reload=no_reload)
    if execute:
        execute_restore(asked, execute, why, catalog, settings)
    else:
        show_restore(asked, catalog, settings, as_json=as_json)


@repair.command()
def backup(
    table: Annotated[str, typer.Argument(help="A table.", autocompletion=table_names)],
    to: Annotated[
        str,
        typer.Option("--to", help="A new folder, or s3://bucket/prefix, elsewhere.", metavar="FOLDER"),
    ],
    version: Annotated[int | None, typer.Option(help="A certified version; by default that of readers.", min=0)] = None,
) -> None:
    """Copy one certified version of a table to a folder of its own: any Delta reader can read it there.

    Nothing of it refers to the lakehouse. `repair restore --from` copies back what is missing. If it is interrupted,
    the same command goes on.
    """
    from getpass import getuser
    from shlex import quote

    from millrace.cli.output import show
    from millrace.cli.selection import new_run_id
    from millrace.clock import utc_now
    from millrace.contracts.counted import counted, in_bytes
    from millrace.control.ops_tables import OpsTables
    from millrace.repair.taking_backups import take_backup
    from millrace.settings import Settings

    ops, run_id = OpsTables(Settings().paths), new_run_id(utc_now())
    taken = take_backup(table, to, ops, version=version, taken_by=getuser(), run_id=run_id)
    has = taken.manifest
    show(
        f"{table}: version {has.version} is in {taken.folder}: {counted(has.rows, 'row')}, "
        f"{counted(len(has.files), 'file')}, {in_bytes(has.size)}, each with its SHA-256 in the manifest.",
        f"To copy it back: lakehouse repair restore {table} --from {quote(str(taken.folder))}",
    )


@repair.command()
def drop(
    table: Annotated[str, typer.Argument(help="A table whose spec is gone.")],
    execute: _Execute = None,
    why: _Why = "",
    as_json: AsJson = False,
) -> None:
    """Drop a table that no spec declares or reads. Until its retention is over, `repair undrop` brings it back.

    Without --execute it only shows what would be gone, and ends with the id of exactly that.
    """
    from millrace.cli.repair.dropping import execute_drop, show_drop
    from millrace.settings import Settings

    if execute:
        execute_drop(table, execute, why, Settings())
    else:
        show_drop(table, Settings(), as_json=as_json)


@repair.command()
def undrop(
    table: Annotated[str, typer.Argument(help="A table that was dropped.")],
    dropped_id: Annotated[str, typer.Option("--id", help="Its id, if several of this name were dropped.")] = "",
    why: _Why = "",
) -> None:
    """Bring a dropped table back: the same versions, certificate, quarantine and tombstones."""
    from millrace.cli.repair.dropping import bring_back
    from millrace.settings import Settings

    bring_back(table, dropped_id, why, Settings())


@repair.command()
def delete(table: _Table, where: _Where, execute: _Execute = None, why: _Why = "", as_json: AsJson = False) -> None:
    """Delete the rows of a bronze or silver table that fulfil a condition, as a batch of the table.

    Without --execute it only shows what would change, and ends with the id of exactly that.
    """
    _repair_rows(table, where, "", execute, why, as_json=as_json)


@repair.command()
def replace(
    table: _Table,
    where: _Where,
    source: Annotated[
        str,
        typer.Option("--from", metavar="TABLE[@VERSION]", help="The table with the new rows, or an earlier version."),
    ],
    execute: _Execute = None,
    why: _Why = "",
    as_json: AsJson = False,
) -> None:
    """Replace the rows of a bronze or silver table that fulfil a condition by those of another table, or a version.

    Of another table all rows are taken, and all must fulfil the condition; of an earlier version of the same table,
    those that do. Without --execute it only shows what would change, and ends with the id of exactly that.
    """
    _repair_rows(table, where, source, execute, why, as_json=as_json)


def _repair_rows(table: str, where: str, source: str, execute: str | None, why: str, *, as_json: bool) -> None:
    from millrace.cli.repair.rows import repair_rows
    from millrace.contracts.job.requests import RepairRequest
    from millrace.settings import Settings

    request = RepairRequest(where=where, source=source, plan=execute or "", why=why)
    raise typer.Exit(repair_rows(table, request, Settings(), as_json=as_json))

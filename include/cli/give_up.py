"""`lakehouse give-up`: let runs and full snapshots go on without failed landing files."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import replace

import typer

from include.cli.catalog import command_catalog
from include.cli.replay import find_files, list_all_files
from include.cli.selection import relative_to_landing
from include.control.landing.file_states import FileState
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import table_id
from include.settings import Settings


def give_up_files(names: Sequence[str], reason: str, settings: Settings) -> list[FileState]:
    """Record that a person gives the files up, and why; return their new states.

    Raises:
        SpecError: a spec is wrong.
        typer.BadParameter: the ledger has no such file, or it can be loaded, or no reason is given.
    """
    if not reason.strip():
        raise typer.BadParameter("why should runs go on without the file? State it with --reason")
    catalog, paths = command_catalog(settings.tables), settings.paths
    ledger, relative_names = Ledger(paths), [relative_to_landing(name, settings.landing) for name in names]
    files, damage = list_all_files(catalog, paths)
    matches = [match for name in relative_names for match in find_files(name, files, damage)]
    for spec, file in matches:
        identity = table_id(paths.table(spec.table))
        failure = ledger.failed_files(spec.table, identity).get(file.path)
        if failure is None:
            msg = f"{file.path} is {file.status}: only a file that could not be loaded can be given up"
            raise typer.BadParameter(msg)
        fact = replace(failure.file, defect=f"by {getpass.getuser()}: {reason} ({failure.file.defect})")
        ledger.record_given_up(spec.table, identity, file.interval, fact)
    return [file for name in relative_names for _, file in find_files(name, *list_all_files(catalog, paths))]

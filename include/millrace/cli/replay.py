"""`lakehouse replay` and `give-up`: run the intervals of failed landing files again, or go on without the files."""

from __future__ import annotations

import getpass
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import typer
from rich.console import RenderableType

from millrace.cli.catalog import command_catalog
from millrace.cli.files import file_table, list_files
from millrace.cli.progress import in_progress
from millrace.cli.selection import Selection, relative_to_landing, with_downstream
from millrace.contracts.file_status import FileStatus
from millrace.contracts.interval import Interval
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.file_states import FileState, give_up
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import FileFact
from millrace.errors import BadInputError, MillraceError, UnknownNameError
from millrace.settings import Settings
from millrace.specs.problem import closest_word

TableFile: TypeAlias = tuple[BronzeSpec, FileState]
"""A landing file, with the spec of its bronze table."""

_MAX_HINTS = 10_000
"""The search for a similar name among more files takes too long."""


@dataclass(frozen=True)
class Replays:
    """The intervals and tables to run again.

    Attributes:
        files: the named files, with their states.
        failed: (table, file) of the files that are not loaded.
        selections: one for each interval of a file that is not loaded: its table, and every table downstream of it in
            the domain.
        damage: a line for each bronze table whose files cannot be listed.
    """

    files: tuple[FileState, ...]
    failed: tuple[tuple[str, FileState], ...]
    selections: tuple[Selection, ...]
    damage: tuple[str, ...] = ()


def replays(names: Sequence[str], settings: Settings) -> Replays:
    """Find the files in the ledger; loaded files need no run.

    Raises:
        UnknownNameError: the ledger has no such file.
        MillraceError: no table that can be read has such a file, and other tables cannot be read.
    """
    catalog = command_catalog(settings.tables)
    matches, damage = find_files(names, settings)
    failed = [(spec, file) for spec, file in matches if file.status is not FileStatus.LOADED]
    waiting: dict[tuple[str, Interval], set[str]] = defaultdict(set)
    for spec, file in failed:
        waiting[spec.domain, file.interval].add(spec.table)
    return Replays(
        files=tuple(file for _, file in matches),
        failed=tuple((spec.table, file) for spec, file in failed),
        selections=tuple(
            Selection(catalog, domain, with_downstream(catalog, domain, tables), (interval,), names_tables=True)
            for (domain, interval), tables in sorted(waiting.items(), key=lambda item: (item[0][0], item[0][1].start))
        ),
        damage=damage,
    )


def record_replays(planned: Replays, settings: Settings) -> None:
    """Let the next runs try the files again, regardless of how often they have failed."""
    paths = settings.paths
    for table, file in planned.failed:
        fact = FileFact(path=file.path, size=file.size, mtime_ns=0, checksum=file.checksum)
        Ledger(paths).record_files(FileEvent.REPLAYED, table, table_id(paths.table(table)), file.interval, [fact])


def replay_views(planned: Replays) -> list[RenderableType]:
    """Return the states of the files before the run, and the intervals to run."""
    runs = [f"{selection.domain}, {selection.intervals[0].label}" for selection in planned.selections]
    summary = f"To be run again: {'; '.join(runs)}" if runs else "All of them are loaded: there is nothing to run."
    return [file_table(planned.files), *planned.damage, summary]


def give_up_files(names: Sequence[str], reason: str, settings: Settings) -> list[FileState]:
    """Record that a person gives the files up, and why; return their new states.

    Raises:
        SpecError: a spec is wrong.
        UnknownNameError: the ledger has no such file, or it can be loaded.
        typer.BadParameter: no reason is given.
    """
    if not reason.strip():
        raise typer.BadParameter("why should runs go on without the file? State it with --reason")
    paths, ledger = settings.paths, Ledger(settings.paths)
    for spec, file in find_files(names, settings)[0]:
        try:
            give_up(spec.table, table_id(paths.table(spec.table)), file, getpass.getuser(), reason, ledger)
        except BadInputError as error:
            raise UnknownNameError(str(error), "`lakehouse files TABLE` shows the state of each file.") from None
    return [file for _, file in find_files(names, settings)[0]]


def find_files(names: Sequence[str], settings: Settings) -> tuple[list[TableFile], tuple[str, ...]]:
    """Return the landing files of these names, and a line for each bronze table whose files cannot be listed.

    Raises:
        UnknownNameError: the ledger has no such file.
        MillraceError: no table that can be read has such a file, and other tables cannot be read.
    """
    paths = [relative_to_landing(name, settings.landing) for name in names]
    files, damage = _list_files(settings, paths)
    for path in paths:
        if any(file.path == path for _, file in files):
            continue
        if damage:
            raise MillraceError(f"no table that can be read has a landing file {path!r}", *damage)
        every = [file.path for _, file in _list_files(settings)[0]]
        likely = closest_word(path, every) if len(every) < _MAX_HINTS else ""
        way_out = f"`lakehouse files TABLE` lists them. {likely}".rstrip()
        raise UnknownNameError(f"the ledger has no landing file {path!r}", way_out)
    return [(spec, file) for path in paths for spec, file in files if file.path == path], tuple(damage)


def _list_files(settings: Settings, paths: Sequence[str] = ()) -> tuple[list[TableFile], list[str]]:
    """Return the landing files of all tables, or those with these paths, and a line for each unreadable table."""
    files, damage = list[TableFile](), list[str]()
    specs = [spec for spec in command_catalog(settings.tables).specs.values() if isinstance(spec, BronzeSpec)]
    for spec in in_progress(specs, "looking for the files in the ledger"):
        try:
            files += [(spec, file) for file in list_files(spec.table, settings.paths, names=paths)]
        except MillraceError as error:
            damage.append(f"{spec.table}: {error}")
    return files, damage

"""`lakehouse views`: SQL scripts and a DuckDB file with a view for each certified version."""

from __future__ import annotations

from pathlib import Path

from millrace.contracts.lake_path import LakePath
from millrace.control.gates.gates import Gates
from millrace.control.log.stored_tables import tables_in
from millrace.control.storage.stored_files import files_in
from millrace.control.views.folder import DUCKDB_FILE, SCRIPTS, rewrite_views
from millrace.control.views.scripts import View
from millrace.errors import QueryError, first_line
from millrace.settings import Settings


def view_script(settings: Settings, engine: str) -> tuple[str, list[str]]:
    """Return the script of one engine, and a line for each table that cannot be read and so has no view in it."""
    views, damage = _views(settings)
    return SCRIPTS[engine](view for view in views.values() if view), damage


def write_views(settings: Settings, folder: LakePath) -> tuple[list[str], list[str]]:
    """Bring views in a folder or a bucket up to date.

    Returns:
        What a person should know of them, and a line for each table that cannot be read: its view stays as it is.

    Raises:
        QueryError: the folder cannot be written.
        MillraceError: the bucket cannot be written.
    """
    damage: list[str] = []

    def current(_is_new: bool) -> dict[str, View | None]:
        views, lines = _views(settings)
        damage.extend(lines)
        return views

    try:
        is_new = rewrite_views(folder, current)
    except OSError as error:
        raise QueryError(f"{folder} cannot be written: {first_line(error)}", "Name another folder.") from error
    names = [file.name for file in files_in(folder) if not file.name.startswith(".")]
    lines = [f"{'wrote' if is_new else 'up to date:'} {', '.join(names)}"]
    if DUCKDB_FILE not in names:
        lines.append(f"There is no {DUCKDB_FILE}: it needs the package duckdb-extension-delta, and everything on disk.")
    if settings.views is None or _absolute(settings.views) != _absolute(folder):
        lines.append(f"Set LAKEHOUSE_VIEWS={folder} for all processes of Millrace: then gates keep them up to date.")
    return lines, damage


def _absolute(place: LakePath) -> LakePath:
    return place.resolve() if isinstance(place, Path) else place


def _views(settings: Settings) -> tuple[dict[str, View | None], list[str]]:
    paths = settings.absolute().paths
    views, damage = Gates(paths).views(tables_in(paths.root))
    return views, [f"{table}: its view is not written: {error}" for table, error in damage.items()]

"""`lakehouse views`: SQL scripts and a DuckDB file with a view for each certified version."""

from __future__ import annotations

from pathlib import Path

from include.control.gates.gates import Gates
from include.control.log.stored_tables import tables_in
from include.control.views.folder import DUCKDB_FILE, SCRIPTS, rewrite_views
from include.control.views.scripts import View
from include.errors import QueryError, first_line
from include.settings import Settings


def view_script(settings: Settings, engine: str) -> str:
    """Return the script of one engine."""
    return SCRIPTS[engine](view for view in _views(settings).values() if view)


def write_views(settings: Settings, folder: Path) -> list[str]:
    """Bring a folder of views up to date, and return what a person should know of it.

    Raises:
        QueryError: the folder cannot be written.
    """
    try:
        is_new = rewrite_views(folder, lambda _: _views(settings))
    except OSError as error:
        raise QueryError(f"{folder} cannot be written: {first_line(error)}", "Name another folder.") from error
    lines = [f"{'wrote' if is_new else 'up to date:'} {', '.join(sorted(path.name for path in folder.glob('[!.]*')))}"]
    if not (folder / DUCKDB_FILE).exists():
        lines.append(f"There is no {DUCKDB_FILE}: it needs the package duckdb-extension-delta, and tables on disk.")
    if settings.views is None or settings.views.resolve() != folder.resolve():
        lines.append(f"Set LAKEHOUSE_VIEWS={folder} for all processes of Millrace: then gates keep it up to date.")
    return lines


def _views(settings: Settings) -> dict[str, View | None]:
    paths = settings.absolute().paths
    return Gates(paths).views(tables_in(paths.root))

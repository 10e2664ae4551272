"""The folder of the views: it is rewritten, file by file and each in one step, when a certified version moves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from uuid import uuid4

from filelock import FileLock

from include.control.storage.json_lines import json_object
from include.control.storage.stored_files import replace_file
from include.control.views.duckdb_file import delta_extension, write_duckdb_file
from include.control.views.scripts import View, duckdb_script, spark_script, trino_script

INDEX = "certified.json"
"""Table -> its path and certified version."""

DUCKDB_FILE = "lakehouse.duckdb"

_UNFINISHED = ".unfinished"
"""It is there while the files are written. A writer that dies leaves it, and the next one writes all tables."""

SCRIPTS: dict[str, Callable[[Iterable[View]], str]] = {
    "duckdb": duckdb_script,
    "spark": spark_script,
    "trino": trino_script,
}
"""Engine -> what writes its script, `<engine>.sql`."""

_LOCK_TIMEOUT_S = 30


def rewrite_views(folder: Path, current: Callable[[bool], Mapping[str, View | None]]) -> bool:
    """Bring the views up to date; return whether anything had to be written.

    A DuckDB file needs DuckDB's extension `delta`, and tables on disk: DuckDB opens each table, and has no credentials
    for a bucket. Otherwise there is no such file, rather than an old one.

    Args:
        folder: the folder, which all machines that run gates share; it is created.
        current: returns table -> its view, None for a table without one, for the tables that may have changed; for all
            tables if it is called with True, because the folder is new. It is called under the lock of the folder, so
            that the last writer has the newest versions.

    Raises:
        OSError: the folder cannot be written; also if its lock was not free for 30 seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock", timeout=_LOCK_TIMEOUT_S):
        unfinished = folder / _UNFINISHED
        before = {} if unfinished.exists() else _read(folder / INDEX)
        changed = {**before, **current(not before)}
        views = {table: view for table, view in sorted(changed.items()) if view}
        if views == before:
            return False
        unfinished.touch()
        _write(folder, list(views.values()))
        unfinished.unlink()
        return True


def _write(folder: Path, views: list[View]) -> None:
    for engine, script in SCRIPTS.items():
        replace_file(folder / f"{engine}.sql", script(views).encode())
    file, extension = folder / DUCKDB_FILE, delta_extension()
    if extension and not any(view.path.startswith("s3://") for view in views):
        partial = folder / f".{DUCKDB_FILE}.{uuid4().hex}"
        try:
            write_duckdb_file(partial, views, extension)
            os.replace(partial, file)
        finally:
            partial.unlink(missing_ok=True)
    else:
        file.unlink(missing_ok=True)
    index = {view.table: {"path": view.path, "version": view.version} for view in views}
    replace_file(folder / INDEX, json.dumps(index, indent=2, ensure_ascii=False).encode())


def _read(file: Path) -> dict[str, View]:
    entries = json_object(file.read_bytes()) if file.is_file() else {}
    try:
        return {table: View(table, str(entry["path"]), int(entry["version"])) for table, entry in entries.items()}
    except (KeyError, TypeError, ValueError):
        return {}  # somebody changed it: write everything again

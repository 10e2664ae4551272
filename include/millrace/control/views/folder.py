"""The folder of the views: it is rewritten, file by file and each in one step, when a certified version moves."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from filelock import FileLock

from millrace.contracts.lake_path import S3, LakePath, S3Path
from millrace.control.leases.store import views_lease
from millrace.control.storage.json_lines import json_object
from millrace.control.storage.stored_files import delete_files, is_file, read_bytes, replace_file
from millrace.control.views.duckdb_file import delta_extension, update_duckdb_file
from millrace.control.views.scripts import View, duckdb_script, spark_script, trino_script

INDEX = "certified.json"
"""Table -> its path, its certified version, and who has certified that by hand."""

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


def rewrite_views(folder: LakePath, current: Callable[[bool], Mapping[str, View | None]]) -> bool:
    """Bring the views up to date; return whether anything had to be written.

    A DuckDB file needs DuckDB's extension `delta`, and a folder and tables on disk: DuckDB opens a table to create its
    view, and has no credentials for a bucket. Otherwise there is no such file, rather than an old one.

    Args:
        folder: the folder or the place in a bucket, which all machines that run gates share; it is created.
        current: returns table -> its view, None for a table without one, for the tables that may have changed; for all
            tables if it is called with True, because the folder is new. It is called under the lock of the folder, so
            that the last writer has the newest versions.

    Raises:
        OSError: the folder cannot be written; also if its lock was not free for 30 seconds.
        MillraceError: the bucket cannot be written; also if its lease was not free for 30 seconds.
    """
    with _lock(folder):
        before = {} if is_file(folder / _UNFINISHED) else _read(folder / INDEX)
        changed = {**before, **current(not before)}
        views = {table: view for table, view in sorted(changed.items()) if view}
        if views == before:
            return False
        replace_file(folder / _UNFINISHED, b"")
        _write(folder, list(views.values()), is_new=not before)
        delete_files(folder, [_UNFINISHED])
        return True


def _lock(folder: LakePath) -> AbstractContextManager[object]:
    if isinstance(folder, S3Path):
        return views_lease(folder, timedelta(seconds=_LOCK_TIMEOUT_S))
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / ".lock", timeout=_LOCK_TIMEOUT_S)


def _write(folder: LakePath, views: list[View], *, is_new: bool) -> None:
    for engine, script in SCRIPTS.items():
        replace_file(folder / f"{engine}.sql", script(views).encode())
    if isinstance(folder, Path):
        _write_duckdb_file(folder / DUCKDB_FILE, views, is_new=is_new)
    index = {
        view.table: {"path": view.path, "version": view.version, "certified_by_hand": view.certified_by_hand}
        for view in views
    }
    replace_file(folder / INDEX, json.dumps(index, indent=2, ensure_ascii=False).encode())


def _write_duckdb_file(file: Path, views: list[View], *, is_new: bool) -> None:
    """Change a copy of the file, and put it in the place of the file."""
    extension = delta_extension()
    if extension is None or any(view.path.startswith(S3) for view in views):
        file.unlink(missing_ok=True)
        return
    partial = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        if file.exists() and not is_new:
            shutil.copyfile(file, partial)
        update_duckdb_file(partial, views, extension)
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)


def _read(file: LakePath) -> dict[str, View]:
    try:
        entries = json_object(read_bytes(file))
        return {
            table: View(table, str(entry["path"]), int(entry["version"]), entry["certified_by_hand"])
            for table, entry in entries.items()
        }
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return {}  # there is none, or somebody changed it: write everything again

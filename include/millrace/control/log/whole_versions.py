"""Versions of a table whose data files are all there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote

from deltalake.exceptions import DeltaError

from millrace.contracts.lake_path import LakePath
from millrace.control.log.delta_log import CHECKPOINT, commit_actions, latest_version, versions_in
from millrace.control.log.stored_tables import logged_files, open_table
from millrace.control.storage.stored_files import files_below, is_file, names_in

_FEW = 16
"""So many files of a bucket are asked for one by one; for more, its listing takes fewer requests."""


def missing_files(path: LakePath, files: Sequence[str]) -> set[str]:
    """Return which of these data files, named as in the log, are no longer there."""
    if isinstance(path, Path) or len(files) <= _FEW:
        return {file for file in files if not is_file(path / unquote(file))}
    return _not_in(files, _stored(path))


def nearest_whole_version(path: LakePath, version: int) -> int | None:
    """Return the lowest version from `version` on that can be read with all of its data files; None if there is none.

    VACUUM deletes files that later versions do not have, and Delta the log of old versions; so what can still be read
    is newer. Of a version that the table does not have yet, it is the newest one, or None.
    """
    newest, stored = latest_version(path), _stored(path)
    checkpoints = versions_in(names_in(path / "_delta_log"), CHECKPOINT)
    first = min(version, newest)
    for start in sorted({first, *(at for at in checkpoints if at > first)}):
        try:
            missing = _not_in(logged_files(open_table(path, start))["path"].to_pylist(), stored)
            for at in range(start, newest + 1):
                actions = commit_actions(path, at) if at > start else []
                missing -= {action["remove"]["path"] for action in actions if "remove" in action}
                missing |= _not_in((action["add"]["path"] for action in actions if "add" in action), stored)
                if not missing:
                    return at
        except (DeltaError, FileNotFoundError):
            continue  # the log no longer has the version, or a commit after it
    return None


def _stored(path: LakePath) -> set[str]:
    return {file.path for file in files_below(path)}


def _not_in(files: Iterable[str], stored: set[str]) -> set[str]:
    return {file for file in files if unquote(file) not in stored}

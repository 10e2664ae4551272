"""Delete old files of runs: reports, driver logs and Data Docs."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from errno import ENOENT, ENOTEMPTY
from pathlib import Path

from millrace.settings import Settings

_PAUSE_S = timedelta(days=1).total_seconds()
_MARK = ".swept"
"""A file whose modification time is the time of the last cleaning."""


def delete_old_runs(settings: Settings) -> None:
    """Delete the files of runs that are older than `keep_runs_days`; every run calls this, it works once a day."""
    paths, now = settings.run_paths, time.time()
    mark = paths.folder / _MARK
    if mark.exists() and now - mark.stat().st_mtime < _PAUSE_S:
        return
    paths.folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    for folder in (paths.reports, paths.driver_logs, paths.data_docs):
        _delete_old_files(folder, now - timedelta(days=settings.keep_runs_days).total_seconds())


def _delete_old_files(folder: Path, before: float) -> None:
    """Delete the files below `folder` that were written before an instant, and old folders that become empty.

    Another run may delete and write files at the same time.
    """
    for place, _, names in os.walk(folder, topdown=False):
        was_old = _is_old(Path(place), before)
        for file in (Path(place) / name for name in names):
            if _is_old(file, before):
                file.unlink(missing_ok=True)
        if was_old and place != str(folder):
            try:
                Path(place).rmdir()
            except OSError as error:
                if error.errno not in (ENOENT, ENOTEMPTY):
                    raise


def _is_old(path: Path, before: float) -> bool:
    """Whether a file or folder still exists and was written before an instant."""
    try:
        return path.lstat().st_mtime < before
    except FileNotFoundError:
        return False

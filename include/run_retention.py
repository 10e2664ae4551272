"""Delete old files of runs: reports, driver logs and Data Docs."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from include.settings import Settings

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
    """Delete the files below `folder` that were written before an instant, and old folders that become empty."""
    for place, _, names in os.walk(folder, topdown=False):
        is_old = Path(place).stat().st_mtime < before
        for name in names:
            file = Path(place) / name
            if file.lstat().st_mtime < before:
                file.unlink(missing_ok=True)
        if is_old and place != str(folder) and not any(Path(place).iterdir()):
            Path(place).rmdir()

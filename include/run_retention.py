"""What runs leave for people to read goes after a time: reports, driver logs and Data Docs."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from include.paths import RunPaths
from include.settings import Settings

_PAUSE_S = timedelta(days=1).total_seconds()
_MARK = ".swept"
"""A file that says by its time when old files were looked for last."""


def forget_old_runs(settings: Settings) -> None:
    """Delete what runs left longer ago than `keep_runs_days`; looked for once a day, whoever starts a run."""
    paths, now = settings.run_paths, time.time()
    mark = paths.folder / _MARK
    if mark.exists() and now - mark.stat().st_mtime < _PAUSE_S:
        return
    paths.folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    for folder in _left_by_runs(paths):
        _forget(folder, now - timedelta(days=settings.keep_runs_days).total_seconds())


def _left_by_runs(paths: RunPaths) -> tuple[Path, ...]:
    return paths.reports, paths.driver_logs, paths.data_docs


def _forget(folder: Path, before: float) -> None:
    """Delete the files below that were written before an instant, and old folders that are empty then."""
    for place, _, names in os.walk(folder, topdown=False):
        is_old = Path(place).stat().st_mtime < before
        for name in names:
            file = Path(place) / name
            if file.lstat().st_mtime < before:
                file.unlink(missing_ok=True)
        if is_old and place != str(folder) and not any(Path(place).iterdir()):
            Path(place).rmdir()

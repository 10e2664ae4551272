"""The files of one try of a task: the report and the driver's output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millrace.paths import RunPaths

_NOT_IN_NAMES = re.compile(r"[^\w.+=-]+")


@dataclass(frozen=True)
class TryFiles:
    """The files of one try of a task.

    Attributes:
        report: `<reports>/<dag>/<run>/<task>/<try>.json`, of a mapped task `<task>/<map index>/<try>.json`.
        driver_log: `<driver logs>/<dag>/<run>/<task>/<try>.log`, of a mapped task likewise.
    """

    report: Path
    driver_log: Path

    @classmethod
    def of(cls, paths: RunPaths, ti: Any) -> TryFiles:
        """Return the files of the task instance `ti`, after removing those of an earlier run with the same name."""
        names = [_NOT_IN_NAMES.sub("_", name) for name in (ti.dag_id, ti.run_id, ti.task_id)]
        mapped = [str(ti.map_index)] if ti.map_index >= 0 else []
        name = Path(*names, *mapped, str(ti.try_number))
        files = cls(paths.reports / f"{name}.json", paths.driver_logs / f"{name}.log")
        files.report.unlink(missing_ok=True)
        files.driver_log.unlink(missing_ok=True)
        return files

"""The arguments that a task gives to its job, and the files of one try: the report and the driver's output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.contracts.interval import Interval
from include.contracts.job.args import JobArgs
from include.paths import RunPaths
from include.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Context

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


def job_args(
    table: str, context: Context, interval: Interval, settings: Settings, report: Path, *, dry_run: bool
) -> JobArgs:
    """Return the arguments of a job for `table`; `settings` must have absolute paths: the driver runs elsewhere."""
    return JobArgs(
        table=table,
        interval_start=interval.start,
        interval_end=interval.end,
        run_id=context["run_id"],
        root=settings.root,
        landing=settings.landing,
        tables=settings.tables,
        report=report,
        reprocess=wants_reprocess(context),
        dry_run=dry_run,
    )


def wants_reprocess(context: Context) -> bool:
    """Whether the form or the backfill's configuration asks to read consumed rows again."""
    return bool(context["params"].get("reprocess", False))

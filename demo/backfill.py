"""A backfill of a few days through Airflow, and its state while it runs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from embedded.airflow.api import RUN_END_STATES, AirflowApi, Run, Task
from embedded.airflow.http import AirflowApiError

_SCHEDULED_RUN_S = 5
"""Seconds to wait for the scheduler's run of the latest interval; it makes none if there is one already."""


@dataclass(frozen=True)
class DayOfBackfill:
    """The run of one day, with the present state of its tasks.

    Attributes:
        run: the run.
        tasks: its tasks.
    """

    run: Run
    tasks: tuple[Task, ...]

    @property
    def day(self) -> date:
        """The UTC day that the run is for.

        Raises:
            ValueError: the run has no interval; runs of a backfill always have one.
        """
        if self.run.data_interval_start is None:
            msg = f"run {self.run.dag_run_id} has no data interval"
            raise ValueError(msg)
        return self.run.data_interval_start.date()

    @property
    def layers(self) -> dict[str, list[Task]]:
        """Layer -> its tasks, in the order of the layers."""
        layers: dict[str, list[Task]] = defaultdict(list)
        for task in self.tasks:
            layers[task.task_id.partition(".")[0]].append(task)
        return {layer: layers[layer] for layer in sorted(layers, key=["bronze", "silver", "gold"].index)}


def restart_backfill(api: AirflowApi, dag_id: str, first: date, last: date, at_once: int) -> None:
    """Start a backfill, also of days that an earlier one has run; end what is left of earlier ones."""
    for backfill in api.open_backfills(dag_id):
        api.cancel_backfill(backfill)
    for run in api.runs(dag_id, state=["queued", "running"]):
        api.end_run(run)
    api.set_paused(dag_id, False)
    api.backfill(dag_id, first, last, at_once, reprocess="completed")
    _skip_scheduled_run(api, dag_id)


def watch(
    api: AirflowApi, dag_id: str, first: date, last: date, patience_s: float, every_s: float = 2
) -> Iterator[list[DayOfBackfill]]:
    """Yield the days of the backfill repeatedly until all have ended; the last value has the final states.

    Raises:
        AirflowApiError: the backfill did not end in time.
    """
    deadline = time.monotonic() + patience_s
    while True:
        days = _days(api, dag_id, first, last)
        yield days
        if len(days) == (last - first).days + 1 and all(day.run.state in RUN_END_STATES for day in days):
            return
        if time.monotonic() > deadline:
            unfinished = [str(day.day) for day in days if day.run.state not in RUN_END_STATES]
            msg = f"the backfill did not end in {patience_s:.0f} s; not done: {', '.join(unfinished)}"
            raise AirflowApiError(msg)
        time.sleep(every_s)


def failed_tasks(days: Sequence[DayOfBackfill]) -> list[Task]:
    """Return the tasks that failed themselves, without those that only follow a failed one."""
    return [task for day in days for task in day.tasks if task.state == "failed"]


def _skip_scheduled_run(api: AirflowApi, dag_id: str) -> None:
    """End the run that Airflow makes for the latest interval when a DAG is unpaused: there are no data so late."""
    deadline = time.monotonic() + _SCHEDULED_RUN_S
    while time.monotonic() < deadline:
        for run in api.runs(dag_id, run_type="scheduled", state=["queued", "running"]):
            api.end_run(run, "success", note="not run: the data ends with 2013")
            return
        time.sleep(0.2)


def _days(api: AirflowApi, dag_id: str, first: date, last: date) -> list[DayOfBackfill]:
    runs = {run.dag_run_id: run for run in api.runs(dag_id, run_type="backfill")}
    tasks: dict[str, list[Task]] = defaultdict(list)
    for task in api.tasks(dag_id):
        tasks[task.dag_run_id].append(task)
    days = [DayOfBackfill(run, tuple(tasks[run_id])) for run_id, run in runs.items()]
    return sorted((day for day in days if first <= day.day <= last), key=lambda day: day.day)

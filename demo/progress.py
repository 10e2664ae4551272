"""Show a running backfill: one bar per day with its running tasks, and one line per finished layer of a day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from demo.backfill import DayOfBackfill
from embedded.airflow.api import TASK_END_STATES, Task


class BackfillProgress:
    """The display of one backfill; it prints each line once."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[running]}"),
            console=console,
        )
        self._bars: dict[date, TaskID] = {}
        self._printed: set[tuple[date, str]] = set()

    def show(self, states: Iterable[list[DayOfBackfill]]) -> list[DayOfBackfill]:
        """Follow the backfill to its end; return its days with their final states."""
        days: list[DayOfBackfill] = []
        with self._progress:
            for days in states:
                for day in days:
                    self._update_bar(day)
                    self._print_layers(day)
        return days

    def _update_bar(self, day: DayOfBackfill) -> None:
        if day.day not in self._bars:
            self._bars[day.day] = self._progress.add_task(str(day.day), running="", start=False)
        bar = self._bars[day.day]
        if any(task.start_date for task in day.tasks):
            self._progress.start_task(bar)
        done = sum(task.state in TASK_END_STATES for task in day.tasks)
        running = ", ".join(task.task_id for task in day.tasks if task.state == "running")
        self._progress.update(bar, total=len(day.tasks), completed=done, running=running)

    def _print_layers(self, day: DayOfBackfill) -> None:
        for layer, tasks in day.layers.items():
            if (day.day, layer) not in self._printed and all(task.state in TASK_END_STATES for task in tasks):
                self._printed.add((day.day, layer))
                line = f"{day.day}  {layer:<6}  {_summary(tasks)}"
                self._progress.console.print(line, soft_wrap=True, highlight=False)


def _summary(tasks: list[Task]) -> str:
    """Return the tables of a layer with the seconds of all their tasks, and the tasks that did not succeed."""
    seconds: dict[str, float] = defaultdict(float)
    for task in tasks:
        seconds[task.task_id.partition(".")[2].removesuffix("_gate").removesuffix(".files")] += task.duration or 0
    failures = [f"[red]{task.task_id} {task.state}[/red]" for task in tasks if task.state != "success"]
    return ", ".join([*(f"{table} {seconds[table]:.1f} s" for table in sorted(seconds)), *failures])

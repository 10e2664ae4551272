"""Shows a backfill while it runs: a bar a day with the tasks at work, and a line when a layer of a day is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from demo.backfill import DayOfBackfill
from embedded.airflow.api import ENDED, Task


class BackfillProgress:
    """The display of one backfill. It holds what has been said already, so that nothing is said twice."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[at_work]}"),
            console=console,
        )
        self._bars: dict[date, TaskID] = {}
        self._said: set[tuple[date, str]] = set()

    def show(self, states: Iterable[list[DayOfBackfill]]) -> list[DayOfBackfill]:
        """Follow the backfill to its end; returns its days as they ended."""
        days: list[DayOfBackfill] = []
        with self._progress:
            for days in states:
                for day in days:
                    self._update_bar(day)
                    self._say_layers(day)
        return days

    def _update_bar(self, day: DayOfBackfill) -> None:
        if day.day not in self._bars:
            self._bars[day.day] = self._progress.add_task(str(day.day), at_work="", start=False)
        bar = self._bars[day.day]
        if any(task.start_date for task in day.tasks):
            self._progress.start_task(bar)
        done = sum(task.state in ENDED for task in day.tasks)
        self._progress.update(bar, total=len(day.tasks), completed=done, at_work=_at_work(day))

    def _say_layers(self, day: DayOfBackfill) -> None:
        for layer, tasks in day.layers.items():
            if (day.day, layer) not in self._said and all(task.state in ENDED for task in tasks):
                self._said.add((day.day, layer))
                self._progress.console.print(f"{day.day}  {layer:<6}  {_told(tasks)}", soft_wrap=True, highlight=False)


def _at_work(day: DayOfBackfill) -> str:
    return ", ".join(task.task_id for task in day.tasks if task.state == "running")


def _told(tasks: list[Task]) -> str:
    """The tables of a layer with their seconds, the gates' included, and whatever did not succeed."""
    seconds: dict[str, float] = defaultdict(float)
    for task in tasks:
        seconds[task.task_id.partition(".")[2].removesuffix("_gate")] += task.duration or 0
    unwell = [f"[red]{task.task_id} {task.state}[/red]" for task in tasks if task.state != "success"]
    return ", ".join([*(f"{table} {seconds[table]:.1f} s" for table in sorted(seconds)), *unwell])

"""Series 13: what Airflow, the start of processes and the plan add to the jobs of a warm day of eight tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from statistics import median

import psutil

from benchmarks.bench import Bench
from benchmarks.cost import Cost, FailedRunError
from benchmarks.result import Result
from benchmarks.rounds import Side
from demo.backfill import DayOfBackfill, restart_backfill, watch
from demo.source_system import lay_out
from embedded.address import Address
from embedded.airflow.api import AirflowApi, Task
from embedded.home import Home
from embedded.stack import Stack, remaining_processes
from millrace.contracts.job.report import JobReport
from millrace.settings import Settings

DOMAIN = "flights"
FIRST = date(2013, 1, 1)
WARM_UP = 2
"""The days before the first one that counts: the first makes the tables, and the JVM compiles."""

WRITE_S, GATE_S, DAY_S = 1.5, 0.5, 45.0
"""The largest good seconds: of a write task without its job, of a gate, and of a whole day on two cores."""

PATIENCE_S = 900.0


@dataclass(frozen=True)
class TaskCost:
    """A task that has ended, in seconds.

    Attributes:
        waiting: from the moment when its upstream tasks had ended until its process started.
        duration: from the start of its process to its end, as Airflow shows it.
        spans: the spans of its report; empty for a sensor, and for a gate that read a recorded result.
    """

    waiting: float
    duration: float
    spans: dict[str, float]

    @property
    def overhead(self) -> float:
        """The duration without the job."""
        return self.duration - self.spans.get("total", 0.0)


def run(bench: Bench) -> list[Result]:
    """Run days one after the other through a whole local stack; the first ones do not count.

    Raises:
        FailedRunError: a day did not succeed.
    """
    folder = bench.fresh("overhead")
    settings = Settings(root=folder / "lake", landing=str(folder / "landing"))
    days = [FIRST + timedelta(days=number) for number in range(WARM_UP + bench.rounds)]
    lay_out(folder / "landing", days[0], days[-1] + timedelta(days=1))
    home = Home(folder / "home")
    stack = Stack(home, settings, Address.free(home, settings))
    costs: list[Cost] = []
    writes: list[TaskCost] = []
    gates: list[TaskCost] = []
    sensors: list[TaskCost] = []
    with stack, stack.api() as api:
        api.wait_for_dag(DOMAIN)
        for number, day in enumerate(days, start=1 - WARM_UP):
            before = _cpu_s(home)
            ended = _run_day(api, day)
            wall_s = _seconds(ended.run.start_date, ended.run.end_date)
            cost = Cost(wall_s, _cpu_s(home) - before)
            bench.print_cost(max(number, 0), str(day), cost)
            if number > 0:
                costs.append(cost)
                for task_id, task in _costs(settings, ended.tasks):
                    kind = gates if task_id.endswith("_gate") else sensors if task_id.endswith(".files") else writes
                    kind.append(task)
    facts = {
        f"a write task without its job, at most {WRITE_S} s": _summary([task.overhead for task in writes], WRITE_S),
        f"a gate, at most {GATE_S} s": _summary([task.overhead for task in gates], GATE_S),
        f"the day, at most {DAY_S:.0f} s": _summary([cost.wall_s for cost in costs], DAY_S),
        "a sensor whose files are there": _summary([task.overhead for task in sensors]),
        "a task waits for Airflow and for a slot": _summary([task.waiting for task in (*writes, *gates, *sensors)]),
        **{f"of a write task: {name}": _summary(list(_span(writes, name))) for name in _names(writes)},
    }
    return [Result("a warm day of eight tables", "Airflow", "Airflow", {"Airflow": Side(tuple(costs))}, facts=facts)]


def _run_day(api: AirflowApi, day: date) -> DayOfBackfill:
    restart_backfill(api, DOMAIN, day, day, at_once=1)
    *_, (ended,) = watch(api, DOMAIN, day, day, PATIENCE_S)
    if ended.run.state != "success":
        raise FailedRunError(f"{day}: the run ended as {ended.run.state}")
    return ended


def _costs(settings: Settings, tasks: Sequence[Task]) -> Iterator[tuple[str, TaskCost]]:
    """Yield the id and the cost of each task of a run."""
    ends = [task.end_date for task in tasks]
    for task in tasks:
        report = _report(settings, task)
        earlier = [end for end in ends if end and task.scheduled_when and end <= task.scheduled_when]
        ready = max(earlier, default=task.scheduled_when)
        spans = report.timings_s if report else {}
        yield task.task_id, TaskCost(_seconds(ready, task.start_date), task.duration or 0.0, spans)


def _report(settings: Settings, task: Task) -> JobReport | None:
    pattern = f"{task.dag_id}/{task.dag_run_id.replace(':', '_')}/{task.task_id}/{task.try_number}.json"
    return JobReport.load(Path(settings.run_paths.reports) / pattern)


def _names(tasks: Sequence[TaskCost]) -> list[str]:
    return list(dict.fromkeys(name for task in tasks for name in task.spans))


def _span(tasks: Sequence[TaskCost], name: str) -> Iterator[float]:
    return (task.spans[name] for task in tasks if name in task.spans)


def _seconds(start: datetime | None, end: datetime | None) -> float:
    return (end - start).total_seconds() if start and end else 0.0


def _summary(seconds: Sequence[float], most: float | None = None) -> str:
    text = f"{median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
    return text if most is None else f"{text}: {'met' if median(seconds) <= most else 'missed'}"


def _cpu_s(home: Home) -> float:
    """Return the CPU-seconds of the stack's processes so far, with those of their children that have ended."""
    used = 0.0
    for process in remaining_processes(home):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:  # Its parent has its time by now.
            continue
        used += times.user + times.system + times.children_user + times.children_system
    return used

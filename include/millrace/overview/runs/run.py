"""A run of a DAG and its tasks, as the orchestrator has seen them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from millrace.clock import utc_now
from millrace.contracts.interval import Interval
from millrace.contracts.job.task_result import TaskResult
from millrace.overview.tables.failed_task import FailedTask, task_label

FAILED, BLOCKED, SKIPPED = "failed", "upstream_failed", "skipped"
RUNNING = ("running", "restarting")
ASKING = "awaiting_input"
ENDED = ("success", FAILED, BLOCKED, SKIPPED, "removed")
"""The states of a task in Airflow's words; in any other state, also in none, it waits."""


class Work(StrEnum):
    """What a task does with its table."""

    FILES = "waits for files"
    WRITE = "write"
    GATE = "gate"
    REPLAY = "replay"
    REBUILD = "rebuild"
    MAINTENANCE = "maintenance"
    APPROVAL = "approval"


@dataclass(frozen=True)
class RunTask:
    """A task instance of a run. Its attributes `dag_id`, `run_id`, `task_id` and `map_index` are those of Airflow.

    Attributes:
        state: its state in Airflow's words; empty if it was not scheduled yet.
        work: what it does; None for a task that is not of Millrace.
        table: its table; empty if it is about none, or none is known yet.
        tries: how many times it was started.
        asked_at: when all that it depends on was done, so that it waited only for a slot; None if it was not yet.
        started: when its last try began; None if none did.
        ended: when its last try ended; None if it has not.
        earlier_s: the seconds that its earlier tries took.
        result: its result, or what its job reported before it failed; None if it has left none.
        checked: the version that a gate has decided about; None for another task.
        answer: what a person has answered to its question, and who; empty without an answer.
        name: its name in Airflow's web UI; empty if that is its id.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    work: Work | None = None
    table: str = ""
    tries: int = 0
    asked_at: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    earlier_s: float = 0.0
    result: TaskResult | None = None
    checked: int | None = None
    answer: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """Its name, with its index if it is mapped."""
        return task_label(self.name or self.task_id, self.map_index)

    @property
    def as_failed(self) -> FailedTask:
        """The same as a task that has failed, by now if it is not known when."""
        at = self.ended or utc_now()
        return FailedTask(self.dag_id, self.run_id, self.task_id, self.map_index, at, self.result, self.name)

    @property
    def is_running(self) -> bool:
        """Whether it works now."""
        return self.state in RUNNING

    @property
    def has_ended(self) -> bool:
        """Whether it does nothing more."""
        return self.state in ENDED


@dataclass(frozen=True)
class Run:
    """A run of a DAG.

    Attributes:
        dag_id: its DAG.
        run_id: its id.
        state: its state in Airflow's words.
        kind: how it was started, in Airflow's words, such as `scheduled`.
        created: when it was made; no batch of it is older.
        interval: the interval whose data it loads; None if it loads none, or its dates do not determine it.
        started: when it began; None if it waits.
        ended: when it ended; None if it has not.
        is_dry_run: whether its form asks only to report what would be done.
        form: the fields of its form, by their names.
        occupied: the date of a scheduled run for which none is made while this run exists; None if there is none.
        tasks: all its tasks.
    """

    dag_id: str
    run_id: str
    state: str
    kind: str = ""
    created: datetime | None = None
    interval: Interval | None = None
    started: datetime | None = None
    ended: datetime | None = None
    is_dry_run: bool = False
    form: Mapping[str, Any] = field(default_factory=dict)
    occupied: datetime | None = None
    tasks: Sequence[RunTask] = ()

    @property
    def own_tasks(self) -> list[RunTask]:
        """The tasks of Millrace."""
        return [task for task in self.tasks if task.work]

    @property
    def failed(self) -> list[RunTask]:
        """The tasks that have failed by themselves, the first one first."""
        failed = [task for task in self.tasks if task.state == FAILED]
        return sorted(failed, key=lambda task: task.ended.timestamp() if task.ended else 0.0)

    @property
    def asking(self) -> list[RunTask]:
        """The tasks that have asked a person something and wait for the answer."""
        return [task for task in self.tasks if task.state == ASKING]

    def took(self, now: datetime) -> timedelta | None:
        """Return how long it took, or takes so far; None if it waits to begin."""
        return (self.ended or now) - self.started if self.started else None

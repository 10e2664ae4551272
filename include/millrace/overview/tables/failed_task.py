"""A task about a table that has failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome


@dataclass(frozen=True)
class FailedTask:
    """A task about a table that has failed, and was neither run again nor marked as successful since.

    Attributes:
        dag_id: its DAG.
        run_id: its run.
        task_id: the task.
        map_index: its index if it is mapped, else -1.
        at: when it failed.
        result: why it failed; None if it could leave nothing, because its process was ended or died.
        name: its name in Airflow's web UI; empty if that is its id.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    at: datetime
    result: TaskResult | None = None
    name: str = ""

    @property
    def label(self) -> str:
        """Its name, with its index if it is mapped."""
        return task_label(self.name or self.task_id, self.map_index)

    @property
    def refused_version(self) -> int | None:
        """The version that it refused, if it is a gate's task and failed because of that."""
        return self.result.version if self.result and self.result.outcome is Outcome.GATE_FAILED else None


def task_label(name: str, map_index: int) -> str:
    """Return how a task instance is called, by the name of its task.

    >>> task_label("silver.orders gate", -1), task_label("load.gate", 2)
    ('silver.orders gate', 'load.gate [2]')
    """
    return name if map_index < 0 else f"{name} [{map_index}]"

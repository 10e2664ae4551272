"""A task about a table that has failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class FailedTask:
    """A task about a table that has failed, and was neither run again nor marked as successful since.

    Attributes:
        dag_id: its DAG.
        run_id: its run.
        task_id: the task.
        map_index: its index if it is mapped, else -1.
        at: when it failed.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    at: datetime

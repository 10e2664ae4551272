"""Brings Airflow's tasks to an end before it is stopped, so that no run is left hanging as if it were running."""

from __future__ import annotations

import logging
import time

from embedded.airflow.api import AirflowApi, Task
from embedded.airflow.standalone import POOL

log = logging.getLogger(__name__)

KILL_S = 20
"""How long a task that was marked failed may take to die: Airflow sees the mark at the next heartbeat."""


def drain(api: AirflowApi, patience_s: float) -> list[Task]:
    """Let no more Spark task start, wait for the running ones, then mark those failed that still run.

    The pool of Spark tasks is left without slots; the start of the stack gives them back.
    """
    api.set_pool(POOL, 0, "closed: the local stack is stopping")
    running = _wait(api, patience_s)
    for task in running:
        log.warning("marking %s of %s failed: it still runs", task.task_id, task.dag_run_id)
        api.mark_failed(task)
    _wait(api, KILL_S)
    return running


def _wait(api: AirflowApi, patience_s: float) -> list[Task]:
    deadline = time.monotonic() + patience_s
    while (running := api.tasks(state="running")) and time.monotonic() < deadline:
        time.sleep(0.5)
    return running

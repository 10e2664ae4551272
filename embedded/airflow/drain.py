"""End Airflow's tasks before Airflow stops, so that no run stays in the state running."""

from __future__ import annotations

import logging
import time

from embedded.airflow.api import AirflowApi, Task
from embedded.airflow.standalone import POOL

log = logging.getLogger(__name__)

KILL_S = 20
"""Seconds to wait for a task that was marked failed: Airflow kills it at its next heartbeat."""


def drain(api: AirflowApi, patience_s: float) -> list[Task]:
    """Start no more Spark tasks, wait `patience_s` seconds for the running ones, then mark the others failed.

    The pool of Spark tasks stays without slots until the next start of the stack.

    Returns:
        The tasks that were marked failed.
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

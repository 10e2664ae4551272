"""A small client of Airflow's REST API for the local stack, the demo and the end-to-end tests."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from pydantic import BaseModel

from embedded.airflow.http import AirflowApiError, AirflowHttp

log = logging.getLogger(__name__)

RUN_END_STATES = frozenset({"success", "failed"})
TASK_END_STATES = RUN_END_STATES | {"upstream_failed", "skipped", "removed"}
COMPONENTS = ("scheduler", "dag_processor", "triggerer")


class Run(BaseModel):
    """One DAG run."""

    dag_id: str
    dag_run_id: str
    run_type: str
    state: str
    logical_date: datetime | None
    data_interval_start: datetime | None
    start_date: datetime | None
    end_date: datetime | None

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"/api/v2/dags/{self.dag_id}/dagRuns/{self.dag_run_id}"


class Task(BaseModel):
    """One task of a DAG run; `task_id` is `<layer>.<task>`."""

    dag_id: str
    dag_run_id: str
    task_id: str
    state: str | None
    try_number: int
    logical_date: datetime | None
    scheduled_when: datetime | None
    start_date: datetime | None
    end_date: datetime | None
    duration: float | None

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"/api/v2/dags/{self.dag_id}/dagRuns/{self.dag_run_id}/taskInstances/{self.task_id}"


class AirflowApi(AirflowHttp):
    """A client with the rights of one user. Close it, or use it in a `with` block."""

    def wait_until_healthy(self, since: datetime, alive: Callable[[], bool]) -> None:
        """Wait until every component has sent a heartbeat after `since`; older heartbeats came from an earlier Airflow.

        Raises:
            AirflowApiError: `alive` returns False, or Airflow is not ready within 15 minutes.
        """
        began, told_s = time.monotonic(), 0.0
        while missing := self._without_heartbeat(since):
            waited_s = time.monotonic() - began
            if not alive() or waited_s > 900:
                msg = f"Airflow did not start; no heartbeat of: {', '.join(missing)}"
                raise AirflowApiError(msg)
            if waited_s > told_s + 30:
                told_s = waited_s
                log.warning("Airflow starts; no heartbeat yet of: %s", ", ".join(missing))
            time.sleep(0.25)

    def wait_for_dag(self, dag_id: str) -> None:
        """Wait until Airflow has parsed the DAG.

        Raises:
            AirflowApiError: the DAG did not appear within two minutes; the message has the import errors.
        """
        deadline = time.monotonic() + 120
        while not any(dag["dag_id"] == dag_id for dag in self.get_all("/api/v2/dags", "dags")):
            if time.monotonic() > deadline:
                errors = self.get("/api/v2/importErrors")["import_errors"]
                msg = f"DAG {dag_id} did not appear; import errors: {[error['stack_trace'] for error in errors]}"
                raise AirflowApiError(msg)
            time.sleep(0.5)

    def set_paused(self, dag_id: str, paused: bool) -> None:
        """Pause or unpause a DAG."""
        self.ask("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": paused})

    def set_pool(self, name: str, slots: int, description: str) -> None:
        """Create a pool, or change its slots."""
        existing = {pool["name"] for pool in self.get_all("/api/v2/pools", "pools")}
        body = {"slots": slots, "description": description, "include_deferred": False}
        if name in existing:
            self.ask("PATCH", f"/api/v2/pools/{name}", json={"pool": name, **body})
        else:
            self.ask("POST", "/api/v2/pools", json={"name": name, **body})

    def trigger(self, dag_id: str, conf: Mapping[str, Any]) -> Run:
        """Start a manual run, as the form in the UI does."""
        body = {"logical_date": None, "conf": dict(conf)}
        return Run.model_validate(self.ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body))

    def backfill(self, dag_id: str, first: date, last: date, at_once: int, reprocess: str = "none") -> int:
        """Start a backfill of whole days, `first` to `last`; return its id."""
        body = {
            "dag_id": dag_id,
            "from_date": f"{first}T00:00:00+00:00",
            "to_date": f"{last}T00:00:00+00:00",
            "max_active_runs": at_once,
            "reprocess_behavior": reprocess,
            "dag_run_conf": {},
        }
        return int(self.ask("POST", "/api/v2/backfills", json=body)["id"])

    def open_backfills(self, dag_id: str) -> list[int]:
        """Return the ids of the DAG's backfills that have not ended."""
        backfills = self.get_all("/api/v2/backfills", "backfills", dag_id=dag_id)
        return [backfill["id"] for backfill in backfills if backfill["completed_at"] is None]

    def cancel_backfill(self, backfill: int) -> None:
        """Cancel a backfill: its queued runs fail, its running ones continue."""
        self.ask("PUT", f"/api/v2/backfills/{backfill}/cancel")

    def run(self, run: Run) -> Run:
        """Return the present state of a run."""
        return Run.model_validate(self.get(run.path))

    def runs(self, dag_id: str = "~", **filters: Any) -> list[Run]:
        """Return the runs of a DAG, or of all DAGs; filter for example by `run_type="backfill"`."""
        path = f"/api/v2/dags/{dag_id}/dagRuns"
        return [Run.model_validate(run) for run in self.get_all(path, "dag_runs", **filters)]

    def end_run(self, run: Run, state: str = "failed", note: str | None = None) -> None:
        """Mark a run failed (or success); Airflow kills its running tasks."""
        self.ask("PATCH", run.path, json={"state": state, "note": note})

    def tasks(self, dag_id: str = "~", run_id: str = "~", **filters: Any) -> list[Task]:
        """Return the tasks of a run, or of all runs."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        return [Task.model_validate(task) for task in self.get_all(path, "task_instances", **filters)]

    def task(self, run: Run, task_id: str) -> Task:
        """Return the present state of one task of a run."""
        return Task.model_validate(self.get(f"{run.path}/taskInstances/{task_id}"))

    def mark_failed(self, task: Task) -> None:
        """Mark a task failed; Airflow kills its process."""
        self.ask("PATCH", task.path, json={"new_state": "failed"})

    def clear(self, run: Run, *task_ids: str) -> None:
        """Clear tasks of a run, and all tasks after them, so that they run again."""
        body = {
            "dry_run": False,
            "only_failed": False,
            "dag_run_id": run.dag_run_id,
            "task_ids": list(task_ids),
            "include_downstream": True,
        }
        self.ask("POST", f"/api/v2/dags/{run.dag_id}/clearTaskInstances", json=body)

    def log(self, task: Task) -> list[str]:
        """Return the log of a task's last try and the error that ended it, without the groups that Airflow folds."""
        content = self.get(f"{task.path}/logs/{task.try_number}", full_content="true")["content"]
        return _outside_groups(line for part in content for line in _lines(part))

    def watch(self, run: Run, patience_s: float) -> Iterator[list[Task]]:
        """Yield the tasks of a run repeatedly until the run has ended; the last value has the final states.

        Raises:
            AirflowApiError: the run did not end in time.
        """
        deadline = time.monotonic() + patience_s
        while self.run(run).state not in RUN_END_STATES:
            tasks = self.tasks(run.dag_id, run.dag_run_id)
            yield tasks
            if time.monotonic() > deadline:
                states = {task.task_id: task.state for task in tasks}
                msg = f"run {run.dag_run_id} of {run.dag_id} did not end in {patience_s:.0f} s: {states}"
                raise AirflowApiError(msg)
            time.sleep(0.5)
        yield self.tasks(run.dag_id, run.dag_run_id)

    def wait_for_run(self, run: Run, patience_s: float) -> Run:
        """Wait until a run has ended, and return it.

        Raises:
            AirflowApiError: the run did not end in time.
        """
        for _ in self.watch(run, patience_s):
            pass
        return self.run(run)

    def _without_heartbeat(self, since: datetime) -> list[str]:
        health = self.peek("/api/v2/monitor/health")
        if health is None:
            return ["api_server"]
        beats = {name: health.get(name, {}).get(f"latest_{name}_heartbeat") for name in COMPONENTS}
        return [name for name, beat in beats.items() if beat is None or datetime.fromisoformat(beat) < since]


def _lines(part: str | dict[str, Any]) -> list[str]:
    """Return the lines of one part of a log.

    >>> _lines({"event": "Task failed", "error_detail": [{"exc_type": "ValueError", "exc_value": "no day"}]})
    ['Task failed', 'ValueError: no day']
    """
    if isinstance(part, str):
        return [part]
    errors = part.get("error_detail") or ()
    return [part["event"], *(f"{error['exc_type']}: {error['exc_value']}" for error in errors)]


def _outside_groups(lines: Iterable[str]) -> list[str]:
    """Return the lines that are in no group.

    >>> _outside_groups(["::group::Pre Execute", "parse", "::endgroup::", "loaded 3 rows"])
    ['loaded 3 rows']
    """
    outside: list[str] = []
    is_in_group = False
    for line in lines:
        if line.startswith(("::group::", "::endgroup::")):
            is_in_group = line.startswith("::group::")
        elif not is_in_group:
            outside.append(line)
    return outside

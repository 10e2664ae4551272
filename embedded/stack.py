"""The local stack: a private PostgreSQL, a warm Spark server and a real Airflow, started and stopped together."""

from __future__ import annotations

import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from embedded.address import Address
from embedded.airflow.api import AirflowApi, Task
from embedded.airflow.http import AirflowApiError
from embedded.airflow.standalone import (
    POOL,
    USER,
    Airflow,
    clean_environment,
    missing_parts,
    stop_airflow,
    warm_spark,
)
from embedded.clone import DEMO, dag_folders
from embedded.errors import StackError
from embedded.home import Home
from embedded.servers.postgres import Postgres
from embedded.spark.server import NAME as SPARK
from embedded.spark.server import SparkServer
from embedded.spark.watch import SparkWatch
from embedded.stack_processes import of_stack, recorded, stop
from millrace.new_files import umask_for_rows
from millrace.settings import Settings

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


log = logging.getLogger(__name__)


class AlreadyRunningError(StackError):
    """Raised when another process runs the stack of the home; the message says how to stop it."""


@dataclass(frozen=True)
class Stack:
    """One local stack. Use it in a `with` block, which ends all its processes, whatever happens.

    Attributes:
        home: its private state; stacks with different homes are independent.
        settings: the settings of its lakehouse.
        address: its ports.
        dags: the folder of its DAG files; None for those of the project.
        connection: the connection `spark_default` as JSON; None for the warm Spark server, which starts only then.
        drain_s: seconds for running tasks to end when it stops; then they are marked failed.
        users: the users of its Airflow; if there are several, nobody may approve their own requests.
    """

    home: Home
    settings: Settings
    address: Address
    dags: Path | None = None
    connection: str | None = None
    drain_s: float = 0
    users: tuple[str, ...] = (USER,)

    @cached_property
    def spark(self) -> SparkServer:
        """Its warm Spark server."""
        return SparkServer(self.home, self.settings.jars, self.address.spark, umask=umask_for_rows(self.settings))

    @property
    def airflow(self) -> Airflow:
        """Its Airflow; only while its PostgreSQL runs."""
        spark = self.connection or warm_spark(self.spark.port, self.spark.token)
        folders = {"dags-folder": self.dags} if self.dags else dag_folders(self.settings.project or DEMO)
        return Airflow(self.home, self.address, folders, Postgres(self.home).url, spark, self.users)

    def __enter__(self) -> Stack:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def api(self, user: str = USER) -> AirflowApi:
        """Return a client of its Airflow for a user; only while the stack runs."""
        return self.airflow.api(user)

    def claim(self) -> None:
        """Lock the home until `stop` or the end of this process, so that no other process runs its stack.

        Raises:
            AlreadyRunningError: another process does.
        """
        self.home.prepare()
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            msg = f"a local stack runs already in {self.home.path}: stop it by `make down`"
            raise AlreadyRunningError(msg) from None

    def start(self) -> None:
        """End the processes of a killed predecessor, start all parts and wait until they work.

        Raises:
            AlreadyRunningError: another process runs this home's stack.
            AirflowStartError, AirflowApiError: Airflow did not come up.
            SparkServerError: the Spark server did not come up.
        """
        self.claim()
        try:
            stop_parts(self.home)
            environment = self.environment()
            Postgres(self.home).start()
            began = datetime.now(UTC)
            with ThreadPoolExecutor() as at_once:
                starting = at_once.submit(self.airflow.start, environment)
                if self.connection is None:
                    self.spark.start(environment)
                    self._watch.start()
                starting.result()
            with self.api() as api:
                api.wait_until_healthy(began, alive=lambda: not missing_parts(self.home))
                api.set_pool(POOL, os.cpu_count() or 2, "one slot per core of this machine")
        except BaseException:
            self._watch.stop()
            stop_parts(self.home)
            raise
        self.address.save(self.home)
        self.home.ready.touch()

    def stop(self) -> None:
        """Stop all parts, in reverse order."""
        self.home.ready.unlink(missing_ok=True)
        self._watch.stop()
        if recorded(self.home, "api-server") is not None:
            try:
                with self.api() as api:
                    drain(api, self.drain_s)
            except AirflowApiError as error:
                log.warning("tasks may stay in the state running: %s", error)
        stop_parts(self.home)
        self._lock.release(force=True)

    def environment(self) -> dict[str, str]:
        """Return the environment of every part: this process's own, cleaned, and the settings of the lakehouse."""
        # A single user must approve their own requests.
        settings = self.settings.model_copy(update={"second_person": len(self.users) > 1})
        return {**clean_environment(), **settings.environment()}

    @cached_property
    def _lock(self) -> FileLock:
        return FileLock(self.home.path / "lock", thread_local=False)

    @cached_property
    def _watch(self) -> SparkWatch:
        return SparkWatch(self.spark, self.environment(), self.settings.paths)


def stop_parts(home: Home) -> None:
    """Stop all parts of a home's stack, whoever started them."""
    stop_airflow(home)
    stop(home, SPARK, patience_s=15)
    Postgres(home).stop()


def remaining_processes(home: Home) -> list[psutil.Process]:
    """Return all running processes of a home's stack."""
    postgres = Postgres(home).process()
    return [*of_stack(home), *([postgres] if postgres else [])]

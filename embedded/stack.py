"""The local stack: a private PostgreSQL, a warm Spark server and a real Airflow, started and stopped as one."""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType

import psutil
from filelock import FileLock, Timeout

from embedded.address import Address
from embedded.airflow.api import AirflowApi
from embedded.airflow.drain import drain
from embedded.airflow.http import AirflowApiError
from embedded.airflow.standalone import NAME as AIRFLOW
from embedded.airflow.standalone import POOL, Airflow, clean_environment, stop_airflow, warm_spark
from embedded.errors import StackError
from embedded.home import Home
from embedded.processes import of_stack, recorded, stop
from embedded.servers.postgres import Postgres
from embedded.spark.server import NAME as SPARK
from embedded.spark.server import SparkServer
from embedded.spark.watch import SparkWatch
from include.settings import PROJECT, Settings

log = logging.getLogger(__name__)


class AlreadyRunningError(StackError):
    """Raised when another process runs the home's stack; the message says how to stop it."""


@dataclass(frozen=True)
class Stack(AbstractContextManager["Stack"]):
    """One local stack. Use it in a `with` block: whatever happens, nothing that it started is left behind.

    Attributes:
        home: its private state; stacks with homes of their own do not know of each other.
        settings: the lakehouse that its jobs work on.
        address: its ports.
        dags: the folder of its DAG files.
        connection: the connection `spark_default` in Airflow's JSON form; by default the warm Spark server,
            which is not started when another one is named.
        drain_s: seconds that running tasks get to end when it stops; then they are marked failed.
    """

    home: Home
    settings: Settings
    address: Address
    dags: Path = PROJECT / "dags"
    connection: str | None = None
    drain_s: float = 0

    @cached_property
    def spark(self) -> SparkServer:
        """Its warm Spark server."""
        return SparkServer(self.home, self.settings.jars, self.address.spark)

    @property
    def airflow(self) -> Airflow:
        """Its Airflow. Only while its PostgreSQL runs."""
        spark = self.connection or warm_spark(self.spark.port, self.spark.token)
        return Airflow(self.home, self.address, self.dags, Postgres(self.home).url, spark)

    def __enter__(self) -> Stack:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def api(self) -> AirflowApi:
        """A client of its Airflow. Only while the stack runs."""
        return self.airflow.api()

    def claim(self) -> None:
        """Make sure that no other process runs this home's stack, from now until `stop` or the end of this process.

        Raises:
            AlreadyRunningError: another one does.
        """
        self.home.prepare()
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            msg = f"a local stack runs already in {self.home.path}: stop it by `make down`"
            raise AlreadyRunningError(msg) from None

    def start(self) -> None:
        """Start all parts and wait until they work. What a killed predecessor left behind is ended first.

        Raises:
            AlreadyRunningError: another process runs this home's stack.
            AirflowApiError: Airflow did not come up.
            SparkServerError: the Spark server did not come up.
        """
        self.claim()
        try:
            stop_parts(self.home)
            self._start_parts()
        except BaseException:
            self._watch.stop()
            stop_parts(self.home)
            raise
        self.address.save(self.home)
        self.home.ready.touch()

    def stop(self) -> None:
        """Stop all parts, the last started first."""
        self.home.ready.unlink(missing_ok=True)
        self._watch.stop()
        self._drain()
        stop_parts(self.home)
        self._lock.release(force=True)

    def environment(self) -> dict[str, str]:
        """The environment of every part: this process's own, cleaned, and the settings of the lakehouse."""
        # The stack has one user, who asks and approves.
        settings = self.settings.model_copy(update={"second_person": False})
        return {**clean_environment(), **settings.environment()}

    def _start_parts(self) -> None:
        environment = self.environment()
        Postgres(self.home).start()
        began = datetime.now(UTC)
        self.airflow.start(environment)
        if self.connection is None:
            self.spark.start(environment)
            self.spark.wait()
            self._watch.start()
        with self.api() as api:
            api.wait_until_healthy(began, alive=lambda: recorded(self.home, AIRFLOW) is not None)
            api.set_pool(POOL, os.cpu_count() or 2, "what this machine's Spark can do at once: one slot a core")

    @cached_property
    def _lock(self) -> FileLock:
        return FileLock(self.home.lock, thread_local=False)

    @cached_property
    def _watch(self) -> SparkWatch:
        return SparkWatch(self.spark, self.environment())

    def _drain(self) -> None:
        if recorded(self.home, AIRFLOW) is None:
            return
        try:
            with self.api() as api:
                drain(api, self.drain_s)
        except AirflowApiError as error:
            log.warning("tasks may be left as running: %s", error)


def stop_parts(home: Home) -> None:
    """Stop whatever runs of a home's stack, by whomever it was started."""
    stop_airflow(home)
    stop(home, SPARK, patience_s=15)
    Postgres(home).stop()


def left_behind(home: Home) -> list[psutil.Process]:
    """Every process of a home's stack that still lives."""
    postgres = Postgres(home).process()
    return [*of_stack(home), *([postgres] if postgres else [])]

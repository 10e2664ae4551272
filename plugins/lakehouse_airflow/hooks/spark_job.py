"""Start the driver of a job as the Airflow connection says, read its output, and end it with all its children."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from lakehouse_airflow.hooks.driver_log import DriverLog
from lakehouse_airflow.hooks.forked_driver import ForkedDriver, JobFile
from millrace.driver_environment import TOKEN, driver_environment, with_scratch_folder
from millrace.errors import SparkUnavailableError
from millrace.processes import end_tree
from millrace.spark_conf import STARTED_BY, launch_conf
from millrace.spark_location import CONNECT, require_server

MASTERS = ("local", "yarn", "spark://", "k8s://", CONNECT)
_GRACE_S = 4.0
"""Seconds between TERM and KILL: Airflow's supervisor kills the task itself after five."""

_VARIABLE_OF_DRIVER = {"yarn": "spark.yarn.appMasterEnv", "k8s://": "spark.kubernetes.driverEnv"}
"""Start of the master -> prefix of the Spark properties that set variables of a driver on the cluster."""


def uses_connect_server(conn_id: str) -> bool:
    """Whether the connection names a Spark Connect server; False for a connection that does not exist."""
    try:
        return (Connection.get(conn_id).host or "").startswith(CONNECT)
    except AirflowNotFoundException:
        return False


class SparkJobHook(SparkSubmitHook):
    """Runs a job file by spark-submit, or, for a `sc://` connection, as a client of a warm Spark Connect server.

    What it uses of the provider without a promise is in `lakehouse_airflow.airflow_internals`.

    Args:
        conn_id: the Airflow connection that says where Spark runs.
        name: the name of the application in Spark's pages.
        application_args: the arguments of the job file.
        conf: Spark properties of the application; a warm server has its own.
        env_vars: variables for the driver.
        driver_log: stores what the driver prints.
        jars_folder: the jars of a submitted application.
        large_load: the job processes so many rows that the JVM's second compiler pays off.
        driver: a fork of this process that waits for the job; only for a Spark Connect server.

    Raises:
        AirflowFailException: the connection does not exist, or names no master that Spark knows.
    """

    def __init__(
        self,
        *,
        conn_id: str,
        name: str,
        application_args: Sequence[str],
        driver_log: DriverLog,
        jars_folder: Path,
        conf: Mapping[str, Any] | None = None,
        env_vars: Mapping[str, str] | None = None,
        large_load: bool = False,
        driver: ForkedDriver | None = None,
    ) -> None:
        self.conn_id = conn_id
        self.application_args = list(application_args)
        self.conf = dict(conf or {})
        self.env_vars = dict(env_vars or {})
        self.driver_log = driver_log
        self.jars_folder = jars_folder
        self.large_load = large_load
        self.driver = driver
        self.was_stopped = False
        self.connection: dict[str, Any] = {}
        self.token: str | None = None
        # Not the variables: the provider would start the driver with its own environment then.
        super().__init__(conn_id=conn_id, name=name, application_args=self.application_args, conf=dict(self.conf))

    @property
    def master(self) -> str:
        """The Spark master, or the address of the Spark Connect server."""
        return str(self.connection["master"])

    @property
    def exit_code(self) -> int | None:
        """The driver's exit code; None until it has ended."""
        return self._submit_sp.poll() if self._submit_sp else None

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Run the job file to its end; all its processes are ended, whatever happens.

        Raises:
            SparkUnavailableError: the Spark Connect server does not answer.
            AirflowException: the exit code of the driver is not 0.
        """
        if self.master.startswith(CONNECT):
            require_server(self.master)
        environment = driver_environment(os.environ, self.master, self.own_variables())
        # Spark drops folders such as spark-warehouse where it is started.
        folder = self.driver_log.path.parent
        folder.mkdir(parents=True, exist_ok=True)
        with with_scratch_folder(environment) as environment:
            try:
                if self.driver is not None:
                    self._run_forked(self.driver, JobFile(application, self.application_args, environment, folder))
                    return None
                return super().submit(application, env=environment, cwd=folder, stdin=subprocess.DEVNULL, **kwargs)
            finally:
                self._end_driver()

    def on_kill(self) -> None:
        """Stop the driver: its process tree on this machine, and its application on a cluster."""
        self.was_stopped = True
        if self.connection["deploy_mode"] == "cluster":
            # The provider asks the cluster to stop the driver only while spark-submit is alive.
            super().on_kill()
            self._end_driver()
        else:
            self._end_driver()
            super().on_kill()

    def own_variables(self) -> dict[str, str]:
        """Return the variables that a driver gets beyond those of this process."""
        token = {TOKEN: self.token} if self.token and self.master.startswith(CONNECT) else {}
        return {**token, STARTED_BY: str(os.getpid()), **self.env_vars}

    def _run_forked(self, driver: ForkedDriver, job: JobFile) -> None:
        self.log.info("Runs as a client of %s: %s", self.master, " ".join([job.application, *job.arguments]))
        self._submit_sp = driver
        driver.run(job)
        self._process_spark_submit_log(iter(driver.stdout))
        if code := driver.wait():
            raise AirflowException(f"exit code {code}")

    def _end_driver(self) -> None:
        if self._submit_sp and (ended := end_tree(self._submit_sp, _GRACE_S)):
            self.log.info("Ended the driver and its children: %d processes", ended)

    def _resolve_connection(self) -> dict[str, Any]:
        # The provider would use `yarn` for a connection that does not exist.
        try:
            self.token = self.get_connection(self.conn_id).password
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"Airflow has no connection {self.conn_id!r}, which says where Spark runs. Create it: "
                f"airflow connections add {self.conn_id} --conn-type spark --conn-host 'local[2]'"
            ) from None
        self.connection = super()._resolve_connection()
        if not self.master.startswith(MASTERS):
            raise AirflowFailException(
                f"The connection {self.conn_id!r} names the Spark master {self.master!r}, which Spark does not know: "
                "give it the host local[2], spark://<host> with a port, yarn, k8s://<url>, or sc://<host> with a port."
            )
        if self.master.startswith("k8s://"):
            try:
                import_module("airflow.providers.cncf.kubernetes.kube_client")
            except ImportError:
                raise AirflowFailException(
                    f"The connection {self.conn_id!r} names {self.master}, which needs a package that is not "
                    "installed: add apache-airflow-providers-cncf-kubernetes."
                ) from None
        return self.connection

    def _build_spark_submit_command(self, application: str) -> list[str]:
        if self.master.startswith(CONNECT):
            command = [sys.executable, application, *self.application_args]
            self.log.info("Runs as a client of %s: %s", self.master, " ".join(command))
            return command
        try:
            conf = launch_conf(self.jars_folder, self.master, large_load=self.large_load)
        except SparkUnavailableError as missing:
            raise AirflowFailException(str(missing)) from None
        for start, prefix in _VARIABLE_OF_DRIVER.items():
            if self.master.startswith(start):
                conf |= {f"{prefix}.{name}": value for name, value in self.env_vars.items()}
        own = (f"{name}={value}" for name, value in conf.items() if name not in self.conf)
        binary, *arguments = super()._build_spark_submit_command(application)
        return [binary, *(part for pair in own for part in ("--conf", pair)), *arguments]

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        if self.master.startswith("k8s://") or self.connection["deploy_mode"] == "cluster":
            # The provider reads the application's id from the lines.
            super()._process_spark_submit_log(self.driver_log.record(itr))
            return
        for level, line in self.driver_log.record_and_pick(itr):
            self.log.log(level, "%s", line)

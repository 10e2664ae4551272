"""Start the driver of a job as the Airflow connection says, read its output, and end it with all its children."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from include.driver_environment import TOKEN, driver_environment, with_scratch_folder
from include.processes import end_tree
from include.spark_conf import STARTED_BY, launch_conf
from include.spark_location import CONNECT, require_server
from lakehouse_airflow.hooks.driver_log import DriverLog

MASTERS = ("local", "yarn", "spark://", "k8s://", CONNECT)
_GRACE_S = 4.0
"""Seconds between TERM and KILL: Airflow's supervisor kills the task itself after five."""


class SparkJobHook(SparkSubmitHook):
    """Runs a job file by spark-submit, or, for a `sc://` connection, as a client of a warm Spark Connect server.

    Args:
        driver_log: stores what the driver prints.
        jars_folder: the jars of a submitted application.
        large_load: the job processes so many rows that the JVM's second compiler pays off.
        arguments: the arguments of the provider's hook.

    Raises:
        AirflowFailException: the connection does not exist, or names no master that Spark knows.
    """

    def __init__(self, *, driver_log: DriverLog, jars_folder: Path, large_load: bool = False, **arguments: Any) -> None:
        self.driver_log = driver_log
        self.was_stopped = False
        self._jars_folder = jars_folder
        self._large_load = large_load
        self._token: str | None = None
        super().__init__(**arguments)

    @property
    def master(self) -> str:
        """The Spark master, or the address of the Spark Connect server."""
        return str(self._connection["master"])

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
        environment = driver_environment(os.environ, self.master, self._own_variables())
        # Spark drops folders such as spark-warehouse where it is started.
        folder = self.driver_log.path.parent
        folder.mkdir(parents=True, exist_ok=True)
        with with_scratch_folder(environment) as environment:
            try:
                return super().submit(application, env=environment, cwd=folder, stdin=subprocess.DEVNULL, **kwargs)
            finally:
                self._end_driver()

    def on_kill(self) -> None:
        """Stop the driver: its process tree on this machine, and its application on a cluster."""
        self.was_stopped = True
        if self._connection["deploy_mode"] == "cluster":
            # The provider asks the cluster to stop the driver only while spark-submit is alive.
            super().on_kill()
            self._end_driver()
        else:
            self._end_driver()
            super().on_kill()

    def _end_driver(self) -> None:
        if self._submit_sp and (ended := end_tree(self._submit_sp, _GRACE_S)):
            self.log.info("Ended the driver and its children: %d processes", ended)

    def _resolve_connection(self) -> dict[str, Any]:
        # The provider would use `yarn` for a connection that does not exist.
        try:
            self._token = self.get_connection(self._conn_id).password
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"Airflow has no connection {self._conn_id!r}, which says where Spark runs. Create it: "
                f"airflow connections add {self._conn_id} --conn-type spark --conn-host 'local[2]'"
            ) from None
        connection: dict[str, Any] = super()._resolve_connection()
        master = connection["master"]
        if not master.startswith(MASTERS):
            raise AirflowFailException(
                f"The connection {self._conn_id!r} names the Spark master {master!r}, which Spark does not know: give "
                "it the host local[2], spark://<host> with a port, yarn, k8s://<url>, or sc://<host> with a port."
            )
        if master.startswith("k8s://"):
            try:
                import_module("airflow.providers.cncf.kubernetes.kube_client")
            except ImportError:
                raise AirflowFailException(
                    f"The connection {self._conn_id!r} names {master}, which needs a package that is not installed: "
                    "add apache-airflow-providers-cncf-kubernetes."
                ) from None
        return connection

    def _build_spark_submit_command(self, application: str) -> list[str]:
        if self.master.startswith(CONNECT):
            command = [sys.executable, application, *(self._application_args or [])]
            self.log.info("Runs as a client of %s: %s", self.master, self._mask_cmd(command))
            return command
        try:
            conf = launch_conf(self._jars_folder, self.master, large_load=self._large_load)
        except FileNotFoundError as missing:
            raise AirflowFailException(str(missing)) from None
        self._conf = {**conf, **self._conf}
        command = super()._build_spark_submit_command(application)
        self._env = None  # `submit` passes the whole environment; this would replace it.
        return list(command)

    def _own_variables(self) -> dict[str, str]:
        token = {TOKEN: self._token} if self._token and self.master.startswith(CONNECT) else {}
        return {**token, STARTED_BY: str(os.getpid()), **(self._env_vars or {})}

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        if self._is_kubernetes or self._connection["deploy_mode"] == "cluster":
            # The provider reads the application's id from the lines.
            super()._process_spark_submit_log(self.driver_log.record(itr))
            return
        for level, line in self.driver_log.record_and_pick(itr):
            self.log.log(level, "%s", line)

"""A real Airflow for one machine: its settings, its start, and a stop that ends all its processes.

Its parts start one by one, since `airflow standalone` starts servers of task logs on all addresses of the machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from embedded.address import Address
from embedded.airflow.api import AirflowApi
from embedded.clone import CLONE
from embedded.errors import StackError
from embedded.home import LOOPBACK, Home, keep_secret, new_secret
from embedded.spark.server import NAME as SPARK
from embedded.stack_processes import of_stack, recorded, spawn, stop
from millrace.processes import end_processes

PARTS = {
    "scheduler": ("airflow", "scheduler", "--skip-serve-logs"),
    "dag-processor": ("airflow", "dag-processor"),
    "api-server": ("airflow", "api-server"),
    "triggerer": ("airflow", "triggerer", "--skip-serve-logs"),
    "log-server": ("uvicorn", "airflow.utils.serve_logs.log_server:get_app", "--factory", "--no-access-log"),
}
"""The commands of its processes, by the names of their records. The log server is Airflow's own, on loopback."""

MIGRATION = "migration"
"""The name of the process that makes or upgrades the tables of its database."""

USER = "admin"
POOL = "spark"
"""The pool of all tasks that use Spark; it has one slot per core."""

PRELOADED = (
    "airflow.executors.local_executor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.dag_processing.dagbag",
    "lakehouse_airflow.preloaded",
    "millrace_spark.preloaded",
)
FORKED_TASKS = {"MP_START_METHOD": "forkserver", "MP_FORKSERVER_PRELOAD": ",".join(PRELOADED)}
"""Settings of the scheduler, by which a task begins with its modules in memory."""

LOCAL_SETTINGS = '''"""Airflow imports this module when one of its processes starts."""

import sys

if "dag-processor" in sys.argv:
    # It parses each DAG file in a fork of itself, every half a minute.
    import lakehouse_airflow.factory

if "scheduler" in sys.argv:
    # The process of which it forks the tasks gets their modules now, so that the first task need not wait for them.
    import multiprocessing.forkserver

    from airflow.utils.process_utils import set_component_mp_start_method

    set_component_mp_start_method("scheduler")
    multiprocessing.forkserver.ensure_running()
'''
"""The content of `airflow_local_settings.py`, a module that Airflow looks for in its home."""


class AirflowStartError(StackError):
    """Raised when Airflow cannot start; the message names the log."""


@dataclass(frozen=True)
class Airflow:
    """An Airflow with the LocalExecutor.

    Attributes:
        home: the folder of its state, log, pid and password.
        address: its ports, all on loopback.
        dags: the folders of the DAG files, by the names of their bundles.
        database: the SQLAlchemy URL of its database.
        spark: the connection `spark_default` as JSON.
        users: its users; each has the role `admin`.
    """

    home: Home
    address: Address
    dags: Mapping[str, Path]
    database: str
    spark: str
    users: tuple[str, ...] = (USER,)

    def api(self, user: str = USER) -> AirflowApi:
        """Return a client of a user."""
        return AirflowApi(self.address.url, user, passwords(self.home, self.users)[user])

    def start(self, env: Mapping[str, str]) -> None:
        """Prepare the database and start all parts; `AirflowApi.wait_until_healthy` waits until they are ready.

        Raises:
            AirflowStartError: Airflow could not prepare its database.
        """
        passwords(self.home, self.users)
        config = self.home.airflow / "config"
        config.mkdir(exist_ok=True)
        (config / "airflow_local_settings.py").write_text(LOCAL_SETTINGS)
        env = {**env, **self.settings()}
        if spawn(self.home, MIGRATION, ["airflow", "db", "migrate"], env, cwd=self.home.airflow).wait():
            msg = f"Airflow could not prepare its database; see its log {self.home.logs / MIGRATION}.log"
            raise AirflowStartError(msg)
        logs = ["--host", LOOPBACK, "--port", str(self.address.worker_logs)]
        for name, command in PARTS.items():
            argv = [*command, *(logs if name == "log-server" else ())]
            spawn(self.home, name, argv, env, cwd=self.home.airflow)

    def settings(self) -> dict[str, str]:
        """Return its environment: all settings that differ from Airflow's defaults."""
        sections = {
            "CORE": {
                "LOAD_EXAMPLES": "False",
                "PARALLELISM": "4",
                "EXECUTION_API_SERVER_URL": f"{self.address.url}/execution/",
                # Where the web server asks for the log of a running task: 127.0.0.1.
                "HOSTNAME_CALLABLE": "urllib.request.localhost",
                "SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:admin" for user in self.users),
                "SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home.passwords),
            },
            "API_AUTH": {"JWT_SECRET": keep_secret(self.home.secrets / "jwt_secret", 3 * new_secret())},
            "DATABASE": {"SQL_ALCHEMY_CONN": self.database},
            "API": {
                "HOST": LOOPBACK,
                "PORT": str(self.address.web),
                "BASE_URL": self.address.url,
                "INSTANCE_NAME": "Millrace",
            },
            "LOGGING": {
                "WORKER_LOG_SERVER_PORT": str(self.address.worker_logs),
                "TRIGGER_LOG_SERVER_PORT": str(self.address.worker_logs),
            },
            # A chain of eight tasks waits 7 s for the scheduler with its default of 1 s, and 4 s with this; with
            # 0.25 s the scheduler itself takes a fifth of a core.
            "SCHEDULER": {"SCHEDULER_IDLE_SLEEP_TIME": "0.5", **FORKED_TASKS},
            "DAG_PROCESSOR": {
                "REFRESH_INTERVAL": "5",
                "PARSING_PROCESSES": "1",
                "DAG_BUNDLE_CONFIG_LIST": json.dumps([_bundle(name, folder) for name, folder in self.dags.items()]),
            },
        }
        settings = {f"AIRFLOW__{name}__{key}": value for name, keys in sections.items() for key, value in keys.items()}
        # With this connection a task that waited for an approval runs again by itself.
        password = passwords(self.home, self.users)[USER]
        itself = {"conn_type": "generic", "host": self.address.url, "login": USER, "password": password}
        connections = {"SPARK_DEFAULT": self.spark, "AIRFLOW_API": json.dumps(itself)}
        variables = {f"AIRFLOW_CONN_{name}": value for name, value in connections.items()}
        return {**settings, **variables, "AIRFLOW_HOME": str(self.home.airflow)}


def _bundle(name: str, folder: Path) -> dict[str, object]:
    local = "airflow.dag_processing.bundles.local.LocalDagBundle"
    return {"name": name, "classpath": local, "kwargs": {"path": str(folder)}}


def missing_parts(home: Home) -> list[str]:
    """Return the names of the parts of the home's Airflow that are not running."""
    return [name for name in PARTS if recorded(home, name) is None]


def stop_airflow(home: Home) -> None:
    """Stop the home's Airflow, and end its remaining processes."""
    names = (MIGRATION, *PARTS)
    end_processes([part for name in names if (part := recorded(home, name))], grace_s=25)
    spark = recorded(home, SPARK)
    # Their records are removed last: a worker is known by its session alone.
    end_processes([process for process in of_stack(home) if process != spark], grace_s=5)
    for name in names:
        stop(home, name, patience_s=0)


def passwords(home: Home, users: Iterable[str] = (USER,)) -> dict[str, str]:
    """Return user -> password; the first call creates them, in a file that only its owner can read."""
    kept: dict[str, str] = json.loads(keep_secret(home.passwords, json.dumps({user: new_secret() for user in users})))
    return kept


def warm_spark(port: int, token: str) -> str:
    """Return the connection, as JSON, by which jobs use the warm Spark server."""
    return json.dumps({"conn_type": "spark", "host": "sc://localhost", "port": port, "password": token})


def clean_environment() -> dict[str, str]:
    """Return this process's environment without the variables of another Airflow, Spark, Python or lakehouse."""
    foreign = ("AIRFLOW", "SPARK_", "PYSPARK_", "PYTHON", "LAKEHOUSE_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    commands = CLONE / ".venv" / "bin"
    return {
        **own,
        "PATH": f"{commands}{os.pathsep}{own.get('PATH', os.defpath)}",
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "GX_ANALYTICS_ENABLED": "False",
        "TZ": "UTC",
    }

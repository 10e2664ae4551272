"""Airflow's API server as a process of its own, with a private home and the pages about one lakehouse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from benchmarks.aged_lake import DOMAIN, environment
from embedded.home import free_port
from millrace.processes import end_tree

HEALTH = "/api/v2/monitor/health"
"""What monitors and Docker ask to see whether the API server lives."""

ADDED_RUNS = "benchmarks.web.added_runs"
"""The module that adds the runs whose pages are measured."""

_USER = "ann"
_PATIENCE_S = 180
_DAGS = f"""from datetime import UTC, datetime

from lakehouse_airflow.factory import build_domain_dag

dag = build_domain_dag("{DOMAIN}", schedule="0 0 * * *", start_date=datetime(1990, 1, 1, tzinfo=UTC), owner="bench")
"""


@dataclass(frozen=True)
class ApiServer:
    """A running API server.

    Attributes:
        url: its address.
        pid: its process, the root of its process tree.
        token: the token of a user who may see everything and change nothing.
    """

    url: str
    pid: int
    token: str

    def client(self) -> httpx.Client:
        """Return a client that has logged in."""
        return httpx.Client(base_url=self.url, timeout=_PATIENCE_S, headers={"Authorization": f"Bearer {self.token}"})


@contextmanager
def api_server(lake: Path) -> Iterator[ApiServer]:
    """Run an API server about the lakehouse in a folder; Airflow knows the DAG of its domain and two of its runs.

    Raises:
        SystemExit: it does not start; the message has its last lines.
    """
    with TemporaryDirectory(prefix="millrace-") as home:
        variables = _environment(lake, Path(home))
        for command in (("airflow", "db", "migrate"), ("airflow", "dags", "reserialize"), (ADDED_RUNS, str(lake))):
            _run(variables, *command)
        port, log = free_port(), Path(home) / "api_server.log"
        serve = [sys.executable, "-m", "airflow", "api-server", "--host", "127.0.0.1", "--port", str(port)]
        with log.open("wb") as output:
            server = subprocess.Popen(serve, env=variables, stdout=output, stderr=output, start_new_session=True)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, server, log)
            yield ApiServer(url, server.pid, _token(url, Path(home)))
        finally:
            end_tree(server, _PATIENCE_S / 10)


def _environment(lake: Path, home: Path) -> dict[str, str]:
    (home / "dags").mkdir()
    (home / "dags" / "bench.py").write_text(_DAGS)
    return {
        **os.environ,
        **environment(lake),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": str(_PATIENCE_S),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{_USER}:viewer",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }


def _run(variables: dict[str, str], *command: str) -> None:
    ended = subprocess.run([sys.executable, "-m", *command], env=variables, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: {ended.stderr[-2000:]}")


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until and server.poll() is None:
        try:
            if httpx.get(url + HEALTH).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise SystemExit(f"the API server does not answer: {log.read_text(errors='replace')[-2000:]}")


def _token(url: str, home: Path) -> str:
    passwords = json.loads((home / "simple_auth_manager_passwords.json.generated").read_text())
    answer = httpx.post(f"{url}/auth/token", json={"username": _USER, "password": passwords[_USER]})
    return str(answer.raise_for_status().json()["access_token"])

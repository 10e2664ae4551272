"""The services of docker-compose.yaml as a project of Docker Compose: start, ask, remove."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from embedded.airflow.api import AirflowApi
from embedded.airflow.standalone import USER
from embedded.clone import CLONE
from embedded.errors import StackError

TABLES, LANDING = "s3://lake/tables", "s3://lake/landing"
"""The places of the tables and of the landing files in docker-compose.yaml."""

PATIENCE_S = 1200
LAST_LINES = 10
WAY_OUT = (
    "Start Docker, make the image (`make image`), or see docs/guides/run-for-a-team.md#when-something-does-not-start"
)


class ComposeError(StackError):
    """Raised when Docker Compose fails; the message has its last lines."""


_RUN = ("run", "--rm", "--no-deps", "--no-TTY", "--entrypoint", "python", "lakehouse")
_TRANSFER = (*_RUN, "-m", "containers.transfer")


@dataclass(frozen=True)
class Compose:
    """One project: its containers, networks and volumes.

    Attributes:
        name: its name, with which all names of its parts begin.
        port: the port of this machine at which its Airflow answers.
        profiles: those of its services that start only if they are named.
    """

    name: str
    port: int
    profiles: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """The address of its Airflow."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the services, and wait until all are healthy.

        Raises:
            ComposeError: there is no image (`make image`), no Docker daemon, or a service does not become healthy.
        """
        self.call("up", "--detach", "--no-build", "--wait", "--wait-timeout", str(PATIENCE_S))

    def remove(self) -> None:
        """Stop the services, and delete their containers, networks and volumes.

        Raises:
            ComposeError: Docker does not answer.
        """
        self.call("down", "--volumes", "--remove-orphans")

    def copy_in(self, folder: Path, place: str) -> None:
        """Copy all files of a folder to a place in the store.

        Raises:
            ComposeError: the store cannot be reached.
        """
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(folder, ".")
            packed.seek(0)
            self.call(*_TRANSFER, "in", place, stdin=packed)

    def copy_out(self, place: str, folder: Path) -> None:
        """Copy all objects below a place in the store into a folder.

        Raises:
            ComposeError: the store cannot be reached.
        """
        with tempfile.TemporaryFile() as packed:
            self.call(*_TRANSFER, "out", place, stdout=packed)
            packed.seek(0)
            with tarfile.open(fileobj=packed) as tar:
                tar.extractall(folder, filter="data")

    def api(self, user: str = USER) -> AirflowApi:
        """Return a client of its Airflow; only while the services run.

        Raises:
            ComposeError: the service does not run.
        """
        command = ("exec", "--no-TTY", "airflow-api-server", "cat", "/run/millrace/users/passwords.json")
        return AirflowApi(self.url, user, json.loads(self.call(*command))[user])

    def call(
        self, *arguments: str, stdin: IO[bytes] | int = subprocess.DEVNULL, stdout: IO[bytes] | int = subprocess.PIPE
    ) -> str:
        """Run a command of Docker Compose for this project; return what it prints.

        Raises:
            ComposeError: its exit code is not 0.
        """
        profiles = [part for profile in self.profiles for part in ("--profile", profile)]
        command = [
            str(Path(sys.executable).parent / "docker-compose"),
            "--project-name",
            self.name,
            *profiles,
            *arguments,
        ]
        environment = {**os.environ, "MILLRACE_WEB": f"127.0.0.1:{self.port}", "MILLRACE_URL": self.url}
        run = subprocess.run(
            command,
            cwd=CLONE,
            env=environment,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S + 60,
        )
        if run.returncode != 0:
            lines = run.stderr.decode(errors="replace").strip().split("\n")[-LAST_LINES:]
            raise ComposeError("\n".join([f"docker compose {arguments[0]} failed: {lines[-1]}", *lines[:-1], WAY_OUT]))
        return (run.stdout or b"").decode()

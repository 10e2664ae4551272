"""The folder with the private state of one local stack; several stacks can run, each with its own home."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from embedded.clone import CLONE

DEFAULT_HOME = CLONE / ".home"
"""The home of `make up` and `make demo`."""

LOOPBACK = "127.0.0.1"
"""The only address on which parts of a stack listen."""


@dataclass(frozen=True)
class Home:
    """The folders and files of a home; `prepare` makes them.

    Attributes:
        path: the home folder, absolute.
    """

    path: Path

    def prepare(self) -> None:
        """Make the folders, which only the owner can read; PostgreSQL makes its own."""
        self.path.mkdir(parents=True, exist_ok=True)
        for folder in (self.airflow, self.spark, self.logs, self.pids, self.secrets):
            folder.mkdir(exist_ok=True, mode=0o700)

    @property
    def postgres(self) -> Path:
        """PostgreSQL's data folder, which has its socket, too."""
        return self.path / "postgres"

    @property
    def airflow(self) -> Path:
        """AIRFLOW_HOME: airflow.cfg and the task logs."""
        return self.path / "airflow"

    @property
    def spark(self) -> Path:
        """The working folder of the Spark server: shuffle files and artifacts."""
        return self.path / "spark"

    @property
    def logs(self) -> Path:
        """The output of the processes of the stack: spark.log, stack.log, and one for each part of Airflow."""
        return self.path / "logs"

    @property
    def pids(self) -> Path:
        """One file per process that the stack started."""
        return self.path / "pids"

    @property
    def secrets(self) -> Path:
        """The token of the Spark server, the passwords of Airflow's users, the key of Airflow's tokens."""
        return self.path / "secrets"

    @property
    def passwords(self) -> Path:
        """The file of Airflow's users: `{"admin": "<password>"}`."""
        return self.secrets / "airflow_passwords.json"

    @property
    def ready(self) -> Path:
        """A file that exists while the stack is ready."""
        return self.path / "ready"

    @property
    def address(self) -> Path:
        """The address of the stack that runs, or ran last."""
        return self.path / "address.json"


def keep_secret(file: Path, text: str) -> str:
    """Return the content of `file`; if it does not exist, make it with `text` and mode 0600."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text()
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    return text


def new_secret() -> str:
    """Return a random secret that is safe in a URL, a header and JSON."""
    return secrets.token_urlsafe(24)


def free_port(preferred: int = 0) -> int:
    """Return a free loopback port: the preferred one if it is free."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind((LOOPBACK, port))
                free: int = probe.getsockname()[1]
                return free
    msg = "no loopback port is free"
    raise OSError(msg)

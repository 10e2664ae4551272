"""Restart a crashed Spark server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from embedded.spark.server import SparkServer, SparkServerError

log = logging.getLogger(__name__)

RESTARTS = 3
"""The number of restarts; after that, only the server's log helps."""


class SparkWatch:
    """A thread that restarts one Spark server until `stop`.

    While the server is down, jobs find its port closed, and Airflow retries them.
    """

    def __init__(self, server: SparkServer, environment: Mapping[str, str], every_s: float = 2) -> None:
        self._server = server
        self._environment = environment
        self._every_s = every_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spark-watch", daemon=True)

    def start(self) -> None:
        """Begin to watch the server."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; return when no restart is running any more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        restarts = 0
        while restarts < RESTARTS and not self._stopping.wait(self._every_s):
            if not self._server.is_alive():
                restarts += 1
                log.warning("the Spark server died; restarting it (%s of %s)", restarts, RESTARTS)
                try:
                    self._server.start(self._environment)
                except (OSError, SparkServerError) as error:
                    log.error("the Spark server did not restart: %s", error)

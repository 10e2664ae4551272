"""Starts a dead Spark server again, so that one crash does not end the day."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from embedded.spark.server import SparkServer, SparkServerError

log = logging.getLogger(__name__)

RESTARTS = 3
"""How often a server is started again before it is left dead: by then its log is of more use."""


class SparkWatch:
    """A thread that looks after one Spark server until it is told to stop.

    Meanwhile a job finds the port closed, and Airflow tries it again later.
    """

    def __init__(self, server: SparkServer, environment: Mapping[str, str], every_s: float = 2) -> None:
        self._server = server
        self._environment = environment
        self._every_s = every_s
        self._told_to_stop = threading.Event()
        self._thread = threading.Thread(target=self._look_after, name="spark-watch", daemon=True)

    def start(self) -> None:
        """Begin to look after the server."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking after it; returns when no restart is under way any more."""
        self._told_to_stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _look_after(self) -> None:
        restarts = 0
        while restarts < RESTARTS and not self._told_to_stop.wait(self._every_s):
            if not self._server.is_alive():
                restarts += 1
                log.warning("the Spark server died; starting it again (%s of %s)", restarts, RESTARTS)
                self._start_again()

    def _start_again(self) -> None:
        try:
            self._server.start(self._environment)
            self._server.wait()
        except (OSError, SparkServerError) as error:
            log.error("the Spark server did not start again: %s", error)

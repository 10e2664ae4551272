"""Restart a crashed Spark server."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from embedded.spark.server import NAME, SparkServer, SparkServerError
from millrace.clock import utc_now
from millrace.errors import MillraceError
from millrace.paths import LakehousePaths

if TYPE_CHECKING:
    from millrace.alerts.down_servers import DownServers

log = logging.getLogger(__name__)

RESTARTS_PER_HOUR = 10
"""The most restarts within an hour: a landing file that kills is given up after four deaths, and two may do so."""

_HOUR_S = 3600.0


class SparkWatch:
    """A thread that restarts one Spark server until `stop`.

    While the server is down, jobs find its port closed, and Airflow retries them. A server that was restarted too often
    within an hour rests until one of these restarts is an hour old; the lakehouse then shows it to people.

    Args:
        server: the server.
        environment: its environment.
        paths: the lakehouse whose jobs it runs.
        every_s: the seconds between two looks at it.
        clock: returns the seconds of a clock that never goes back.
    """

    def __init__(
        self,
        server: SparkServer,
        environment: Mapping[str, str],
        paths: LakehousePaths,
        every_s: float = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._environment = environment
        self._paths = paths
        self._every_s = every_s
        self._clock = clock
        self._restarts: deque[float] = deque(maxlen=RESTARTS_PER_HOUR)
        self._rests = False
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
        self._end_rest()

    def _watch(self) -> None:
        while not self._stopping.wait(self._every_s):
            if self._server.is_alive():
                continue
            rest_s = self._restarts[0] + _HOUR_S - self._clock() if len(self._restarts) == RESTARTS_PER_HOUR else 0
            if rest_s > 0:
                self._rest(rest_s)
                continue
            self._restarts.append(self._clock())
            log.warning("the Spark server died; restarting it")
            try:
                self._server.start(self._environment)
            except (OSError, SparkServerError) as error:
                log.error("the Spark server did not restart: %s", error)
            else:
                self._end_rest()

    def _rest(self, seconds: float) -> None:
        """Tell people, once, that the server is not started for some seconds."""
        if self._rests:
            return
        # Imported here: most stacks never need it.
        from millrace.alerts.down_servers import DownServer

        self._rests, now, home = True, utc_now(), self._server.home
        again_at = now + timedelta(seconds=seconds)
        log_file = str(home.logs / f"{NAME}.log")
        down = DownServer(name=str(home.path), restarts=RESTARTS_PER_HOUR, since=now, again_at=again_at, log=log_file)
        log.error("%s. %s", down.cause, down.way_out)
        self._change(lambda servers: servers.add(down))

    def _end_rest(self) -> None:
        if self._rests:
            self._rests = False
            self._change(lambda servers: servers.remove(str(self._server.home.path)))

    def _change(self, change: Callable[[DownServers], None]) -> None:
        from millrace.alerts.down_servers import DownServers

        try:
            change(DownServers(self._paths))
        except (OSError, MillraceError) as error:  # The watch must go on; what it says is in its log.
            log.error("the lakehouse does not show the state of the Spark server: %s", error)

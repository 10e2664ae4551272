"""End a driver with the process that started it, so that the retry of a killed task runs alone."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Mapping

import psutil

from millrace.spark_conf import STARTED_BY

CHECK_INTERVAL_S = 1.0
GRACE_S = 30.0
"""Seconds between TERM, after which a driver asks the Spark server to stop its work, and KILL."""

log = logging.getLogger(__name__)


def end_with_parent(environment: Mapping[str, str]) -> None:
    """End this process soon after the process that started it, if the environment names that."""
    if pid := environment.get(STARTED_BY):
        threading.Thread(target=_watch, args=(int(pid),), daemon=True).start()


def _watch(pid: int) -> None:
    try:
        parent = psutil.Process(pid)
        while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:
            time.sleep(CHECK_INTERVAL_S)
    except psutil.NoSuchProcess:
        pass
    log.error("Process %d, which started this driver, is gone: the driver ends. A retry is safe.", pid)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)

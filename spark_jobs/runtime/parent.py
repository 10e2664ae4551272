"""A driver does not outlive the process that started it: a task that was killed is tried again, and is alone then."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Mapping

import psutil

from include.spark_conf import STARTED_BY

LOOKS_EVERY_S = 1.0
GRACE_S = 30.0
"""Between TERM, by which a driver asks a Spark server to stop what it runs, and KILL."""

log = logging.getLogger(__name__)


def end_with_parent(environment: Mapping[str, str]) -> None:
    """End this process soon after the one that started it, if the environment says which that is."""
    if pid := environment.get(STARTED_BY):
        threading.Thread(target=_watch, args=(int(pid),), daemon=True).start()


def _watch(pid: int) -> None:
    try:
        parent = psutil.Process(pid)
        while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:
            time.sleep(LOOKS_EVERY_S)
    except psutil.NoSuchProcess:
        pass
    log.error("Process %d, which started this driver, is gone: the driver ends. A retry is safe.", pid)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)

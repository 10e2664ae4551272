"""Starts real job drivers, one after the other, each in a process of its own that has its imports done.

python -m tests.support.killed_drivers.nursery

Each line of stdin is a life: {"place": ..., "signum": 9, "victim": 0, "job": "silver_merge", "argv": [...],
"log": "<file>"}. At the place, the driver sends the signal to the victim, which is itself for 0. Each life is
answered by a line with the driver's exit code, negative for the signal that ended it. A life with a "command" and an
"environment" in place of the job and its argv is one of the command `lakehouse`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

from include.cli.app import app
from include.contracts.job.args import Job
from include.control.leases.leases import Leases
from include.control.storage.objects import LocalObjectStore
from include.paths import LakehousePaths
from spark_jobs.jobs import table_rebuild
from spark_jobs.quality import suites  # noqa: F401 - what a gate judges by
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main
from tests.support.killed_drivers.places import set_up
from tests.support.lakehouse import RUN

LEASE_LASTS_S = 1.0
"""A dead driver's lease is waited for; the default of 30 s would only make the tests slow."""


def serve() -> None:
    """Bear a driver for each line, and tell how it died."""
    gc.freeze()  # a driver that looked through all that was imported, at its end, would copy it
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            live(json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def live(life: dict[str, Any]) -> None:
    """Be a driver, as the job's own module is, or a command; ends the process."""
    log = os.open(life["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    JobContext.leases = property(_leases)
    table_rebuild.lakehouse_leases = lambda paths, *_: _short_leases(paths)
    set_up(life["place"], lambda: os.kill(life["victim"] or os.getpid(), life["signum"]))
    if "command" in life:
        os.environ.update(life["environment"])
        app(life["command"], prog_name="lakehouse")
    job = Job(life["job"])
    main(job, RUN[job], life["argv"])


def _leases(context: JobContext) -> Leases:
    return _short_leases(context.paths)


def _short_leases(paths: LakehousePaths) -> Leases:
    return Leases(LocalObjectStore(paths.leases), f"driver {os.getpid()}", LEASE_LASTS_S)


if __name__ == "__main__":
    serve()

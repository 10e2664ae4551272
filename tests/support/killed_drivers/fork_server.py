"""Fork real job drivers one after another from a process that has done their imports.

python -m tests.support.killed_drivers.fork_server

Each line of stdin is an order: {"place": ..., "signum": 9, "victim": 0, "job": "silver_merge", "argv": [...],
"log": "<file>"}. At the place, the driver sends the signal to the process `victim`, which is itself for 0. The answer
is a line with the driver's exit code, negative for the signal that ended it. With a "command" and an "environment" in
place of job and argv, the process runs the command `lakehouse`.
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
from spark_jobs.layers.gate import changed_rows
from spark_jobs.quality import suites  # noqa: F401 - a gate uses it
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main
from tests.support.killed_drivers.places import kill_at
from tests.support.lakehouse import RUN

LEASE_LASTS_S = 1.0
"""The next driver waits for the lease of a dead one; the default of 30 s would only make the tests slow."""

FEW_ROWS = -1000
"""Gates judge also the small tables of tests by what changed, as they do with large ones."""


def serve() -> None:
    """Fork a driver for each line, and answer with its exit code."""
    gc.freeze()  # a garbage collection in a driver would copy all imported objects
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            run(json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def run(order: dict[str, Any]) -> None:
    """Run a job as its own module does, or a command; end the process."""
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    JobContext.leases = property(lambda context: _short_leases(context.paths))
    table_rebuild.lakehouse_leases = lambda paths, *_: _short_leases(paths)
    changed_rows.FEW_ROWS = FEW_ROWS
    kill_at(order["place"], lambda: os.kill(order["victim"] or os.getpid(), order["signum"]))
    if "command" in order:
        os.environ.update(order["environment"])
        app(order["command"], prog_name="lakehouse")
    job = Job(order["job"])
    main(job, RUN[job], order["argv"])


def _short_leases(paths: LakehousePaths) -> Leases:
    return Leases(LocalObjectStore(paths.leases), f"driver {os.getpid()}", LEASE_LASTS_S)


if __name__ == "__main__":
    serve()

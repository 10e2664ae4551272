"""Fork real job drivers one after another from a process that has done their imports.

python -m tests.support.killed_drivers.fork_server

Each line of stdin is an order: {"place": ..., "signum": 9, "victim": 0, "job": "silver_merge", "argv": [...],
"log": "<file>"}. At the place, the driver sends the signal to the process `victim`, which is itself for 0. The answer
is a line with the driver's exit code, negative for the signal that ended it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

import pytest

from millrace.contracts.job.args import Job
from millrace.control.leases.leases import Leases
from millrace.control.storage.objects import LocalObjectStore
from millrace.paths import LakehousePaths
from millrace_spark.jobs import table_rebuild
from millrace_spark.quality import suites  # noqa: F401 - a gate uses it
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main
from tests.support.killed_drivers.places import die_at, judge_few_rows_by_change
from tests.support.lakehouse import RUN

LEASE_LASTS_S = 1.0
"""The next driver waits for the lease of a dead one; the default of 30 s would only make the tests slow."""


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
    """Run a job as its own module does; end the process."""
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    JobContext.leases = property(lambda context: _short_leases(context.paths))
    table_rebuild.lakehouse_leases = lambda paths, *_: _short_leases(paths)
    patches = pytest.MonkeyPatch()
    judge_few_rows_by_change(patches)
    die_at(order["place"], patches, lambda: os.kill(order["victim"] or os.getpid(), order["signum"]))
    job = Job(order["job"])
    main(job, RUN[job], order["argv"])


def _short_leases(paths: LakehousePaths) -> Leases:
    return Leases(LocalObjectStore(paths.leases), f"driver {os.getpid()}", LEASE_LASTS_S)


if __name__ == "__main__":
    serve()

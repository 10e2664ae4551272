"""A process that holds the lease of a stream until it gets a line.

    python -m tests.support.ledger.lease_holder FOLDER LASTS_S

prints `held` once it holds the stream's lease, waits for a line, and prints `released`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from include.contracts.lake_path import LakePath, lake_path
from include.control.leases.leases import Leases
from include.control.storage.objects_on_s3 import object_store
from include.settings import PROJECT

TABLE, STREAM = "silver.flights", "main"
STREAM_KEY = f"{TABLE}.stream-{STREAM}"
HOLDER = "the other process"


@contextmanager
def lease_of_other_process(folder: LakePath, lasts_s: float) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the stream's lease within the block; it is killed at the end."""
    command = [sys.executable, "-m", "tests.support.ledger.lease_holder", str(folder), str(lasts_s)]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    with Leases(object_store(lake_path(sys.argv[1])), HOLDER, lasts_s=float(sys.argv[2])).stream(TABLE, STREAM):
        sys.stdout.write("held\n")
        sys.stdout.flush()
        sys.stdin.readline()
    sys.stdout.write("released\n")

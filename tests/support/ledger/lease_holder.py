"""Processes that hold leases: one that holds its lease until it gets a line, and several that share a counter.

    python -m tests.support.ledger.lease_holder FOLDER LASTS_S

prints `held` once it holds the stream's lease, waits for a line, and prints `released`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedded.clone import CLONE
from millrace.contracts.lake_path import LakePath, lake_path
from millrace.control.leases.leases import LeaseClaim, Leases
from millrace.control.storage.objects import LocalObjectStore
from millrace.control.storage.objects_on_s3 import object_store
from tests.support.processes import LineUp

TABLE, STREAM = "silver.flights", "main"
STREAM_KEY = f"{TABLE}.stream-{STREAM}"
HOLDER = "the other process"


@contextmanager
def lease_of_other_process(folder: LakePath, lasts_s: float) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the stream's lease within the block; it is killed at the end."""
    command = [sys.executable, "-m", "tests.support.ledger.lease_holder", str(folder), str(lasts_s)]
    process = subprocess.Popen(command, cwd=CLONE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert next_line(process) == "held"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def next_line(process: subprocess.Popen[str]) -> str:
    """Return the next line of the process's output."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def release(process: subprocess.Popen[str]) -> None:
    """Let the process release its lease, and wait until it has."""
    assert process.stdin is not None
    process.stdin.write("release\n")
    process.stdin.flush()
    assert next_line(process) == "released"
    assert process.wait(timeout=60) == 0


def count_up(number: int, _: LineUp, folder: Path, counter: Path, times: int) -> None:
    """Add one to the number in a file `times` times; the result is right only if no other process does it at that time.

    Processes with an even number lease the stream, the others the whole table.
    """
    leases = Leases(LocalObjectStore(folder), f"process {number}", lasts_s=120, patience_s=120)
    for _round in range(times):
        with leases.table(TABLE) if number % 2 else leases.stream(TABLE, STREAM):
            count = int(counter.read_text())
            time.sleep(0.002)
            counter.write_text(str(count + 1))


def _hold(folder: LakePath, lasts_s: float) -> None:
    with Leases(object_store(folder), HOLDER, lasts_s=lasts_s).stream(TABLE, STREAM):
        sys.stdout.write("held\n")
        sys.stdout.flush()
        sys.stdin.readline()
    sys.stdout.write("released\n")


if __name__ == "__main__":
    _hold(lake_path(sys.argv[1]), float(sys.argv[2]))


def claim_in(store: LocalObjectStore, key: str = STREAM_KEY) -> LeaseClaim:
    """Return the present lease."""
    stored = store.get(key)
    assert stored is not None
    return LeaseClaim.from_bytes(stored.body)

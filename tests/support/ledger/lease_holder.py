"""Processes that hold leases: one that holds until it is told to leave, and several that share a counter.

    python -m tests.support.ledger.lease_holder FOLDER LASTS_S

says `held` once it holds the stream's lease, waits for a line, and says `released`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from include.contracts.lake_path import LakePath, lake_path
from include.control.leases.claim import LeaseClaim
from include.control.leases.leases import Leases
from include.control.storage.objects import LocalObjectStore
from include.control.storage.objects_on_s3 import object_store
from include.settings import PROJECT
from tests.support.processes import LineUp

TABLE, STREAM = "silver.flights", "main"
STREAM_KEY = f"{TABLE}.stream-{STREAM}"
HOLDER = "the other process"


@contextmanager
def holding(folder: LakePath, lasts_s: float) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the stream's lease within the block; it is killed at the end."""
    command = [sys.executable, "-m", "tests.support.ledger.lease_holder", str(folder), str(lasts_s)]
    process = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert hears(process) == "held"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def hears(process: subprocess.Popen[str]) -> str:
    """Return the next line of the process's output."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def leave(process: subprocess.Popen[str]) -> None:
    """Let the process release its lease, and wait until it has."""
    assert process.stdin is not None
    process.stdin.write("leave\n")
    process.stdin.flush()
    assert hears(process) == "released"
    assert process.wait(timeout=60) == 0


def count_up(number: int, _: LineUp, folder: Path, counter: Path, times: int) -> None:
    """Add to a number in a file, which is right only if nobody else does at the same time.

    Even numbers lease the stream, odd ones the whole table.
    """
    leases = Leases(LocalObjectStore(folder), f"process {number}", lasts_s=120, patience_s=120)
    for _round in range(times):
        with leases.table(TABLE) if number % 2 else leases.stream(TABLE, STREAM):
            seen = int(counter.read_text())
            time.sleep(0.002)
            counter.write_text(str(seen + 1))


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
    found = store.get(key)
    assert found is not None
    return LeaseClaim.from_bytes(found.body)

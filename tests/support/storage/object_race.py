"""Processes that race for the same object, with few imports, so that new processes start at once."""

from __future__ import annotations

from pathlib import Path

from millrace.control.storage.objects import LocalObjectStore
from tests.support.processes import LineUp


def race_to_replace(number: int, _: LineUp, folder: Path, wins: int) -> int:
    """Add one to the number in `counter` `wins` times, and return how often another process was faster."""
    store, lost = LocalObjectStore(folder), 0
    while wins:
        current = store.get("counter")
        assert current is not None
        if store.put_if_match("counter", str(int(current.body) + 1).encode(), current.etag):
            wins -= 1
        else:
            lost += 1
    return lost

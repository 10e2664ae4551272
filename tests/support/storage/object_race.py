"""Processes that race for the same objects, with few imports, so that new processes start at once."""

from __future__ import annotations

from pathlib import Path

from include.control.storage.objects import LocalObjectStore
from tests.support.processes import LineUp


def race_to_create(number: int, line_up: LineUp, folder: Path, rounds: int) -> list[int]:
    """Return the rounds whose object this process created."""
    store, won = LocalObjectStore(folder), []
    for turn in range(rounds):
        line_up()
        if store.put_if_absent(f"round-{turn}", str(number).encode()):
            won.append(turn)
    return won


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

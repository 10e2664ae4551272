"""Processes that race for the same objects; light, so that new processes start at once."""

from __future__ import annotations

from pathlib import Path

from include.control.storage.objects import LocalObjectStore
from tests.support.processes import LineUp


def race_to_create(number: int, line_up: LineUp, folder: Path, rounds: int) -> list[int]:
    """The rounds whose object this process created."""
    store, won = LocalObjectStore(folder), []
    for one in range(rounds):
        line_up()
        if store.put_if_absent(f"round-{one}", str(number).encode()):
            won.append(one)
    return won


def race_to_replace(number: int, _: LineUp, folder: Path, wins: int) -> int:
    """Add one to the number in `counter` until it was done `wins` times; how often another was faster is returned."""
    store, lost = LocalObjectStore(folder), 0
    while wins:
        current = store.get("counter")
        assert current is not None
        if store.put_if_match("counter", str(int(current.body) + 1).encode(), current.etag):
            wins -= 1
        else:
            lost += 1
    return lost

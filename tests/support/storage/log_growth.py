"""A writer that lets a Delta log grow as fast as it can; light, so that a new process starts at once."""

from __future__ import annotations

from pathlib import Path


def grow(table: Path, last: int) -> None:
    """Make the commits 0 to `last`, each complete at once, as every log store does."""
    log = table / "_delta_log"
    log.mkdir(parents=True)
    for version in range(last + 1):
        unfinished = log / f".{version}"
        unfinished.write_text('{"commitInfo": {"operation": "WRITE"}}\n')
        unfinished.rename(log / f"{version:020d}.json")

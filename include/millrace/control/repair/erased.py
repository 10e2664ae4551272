"""Whether subjects were erased from a table after a version: nothing may bring the rows of that version back."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.contracts.lake_path import LakePath
from millrace.control.log.batch import ERASURE
from millrace.control.log.delta_log import remaining_commits


@dataclass(frozen=True)
class ErasedSince:
    """The last erasure after a version of a table.

    Attributes:
        name: its name, with that of its request.
        version: the first version without the subjects.
    """

    name: str
    version: int


def last_erasure(path: LakePath, version: int) -> ErasedSince | None:
    """Return the last erasure after a version, of a table, a quarantine or tombstones; None if there is none."""
    found = None
    for commit in remaining_commits(path, version):
        name = commit.metadata.get("sources", {}).get("deletes", "")
        if name.startswith(ERASURE):
            found = ErasedSince(name, commit.version)
    return found

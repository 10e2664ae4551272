"""What a run committed to a table, read from the commit files of its log.

delta-rs is not used here: OpenLineage's provider builds its events in a fork of the task's process, in which delta-rs
does not work once the task has used it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millrace.contracts.lake_path import LakePath
from millrace.control.log.batch import BatchSources
from millrace.control.log.delta_log import commit_actions, read_commit


@dataclass(frozen=True)
class Committed:
    """What the commits of a run added.

    Attributes:
        files: the number of data files.
        size: their bytes.
        sources: what the last batch had read; None if the run committed nothing.
        landing_files: the number of landing files.
    """

    files: int = 0
    size: int = 0
    landing_files: int = 0
    sources: BatchSources | None = None


def committed_by(run_id: str, table: LakePath, version: int | None) -> Committed:
    """Return what the run committed up to `version`, in as many batches as it made one after another."""
    total = Committed()
    for actions, sources in _commits_of(run_id, table, version):
        sizes = [action["add"]["size"] for action in actions if "add" in action]
        total = Committed(
            files=total.files + len(sizes),
            size=total.size + sum(sizes),
            landing_files=total.landing_files + sources.files,
            sources=total.sources or sources,
        )
    return total


def _commits_of(
    run_id: str, table: LakePath, version: int | None
) -> Iterator[tuple[list[dict[str, Any]], BatchSources]]:
    """Yield the actions of each commit of the run, the newest first, and what its batch has read."""
    at = -1 if version is None else version
    while at >= 0 and (commit := read_commit(table, at)) and commit.metadata.get("run_id") == run_id:
        yield commit_actions(table, at), BatchSources.model_validate(commit.metadata["sources"])
        at -= 1

"""The limit of a silver batch: a number of rows or data files of its source, in whole commits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from itertools import takewhile

from include.contracts.spec.table_spec import SilverSpec
from include.control.log.batch import BatchSources
from include.control.log.delta_log import Commit, remaining_commits
from include.paths import LakehousePaths


def limit_batch(
    spec: SilverSpec, sources: BatchSources, paths: LakehousePaths, readable_since: datetime
) -> BatchSources:
    """Return the sources with a shorter range, so that the batch keeps the limits of its spec.

    A commit of the source is never split: the limits of bronze bound its size. Commits that the log of the source no
    longer has, and versions before `readable_since` that Delta no longer reads, are read together with the next commit.
    """
    if spec.max_rows_per_batch is None and spec.max_files_per_batch is None:
        return sources
    after, upto = sources.ranges[spec.source]
    commits = takewhile(lambda commit: commit.version <= upto, remaining_commits(paths.table(spec.source), after))
    end = _last_version(spec, commits, readable_since)
    return sources.model_copy(update={"ranges": {spec.source: (after, upto if end is None else end)}})


def _last_version(spec: SilverSpec, commits: Iterable[Commit], readable_since: datetime) -> int | None:
    """Return the last version that the batch reads; None if it reads all commits."""
    max_rows, max_files = spec.max_rows_per_batch or math.inf, spec.max_files_per_batch or math.inf
    rows = files = 0
    end: int | None = None
    for commit in commits:
        if commit.changes_data:
            rows, files = rows + int(commit.metrics.get("numOutputRows", 0)), files + len(commit.added)
        if end is not None and (rows > max_rows or files > max_files):
            return end
        end = commit.version if commit.at >= readable_since else end
    return None

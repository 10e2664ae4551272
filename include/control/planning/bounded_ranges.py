"""How far a silver batch reads at once: so many rows or data files of its source, in whole commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import takewhile

from include.contracts.lake_path import LakePath
from include.contracts.spec.table_spec import SilverSpec
from include.control.log.batch import BatchSources
from include.control.log.delta_log import Commit, commits_still_known
from include.paths import LakehousePaths


def bounded(spec: SilverSpec, sources: BatchSources, paths: LakehousePaths, readable_since: datetime) -> BatchSources:
    """The sources with a range that ends where a batch of the spec's size does.

    A commit of the source is taken whole: bronze's own limits say how large one gets. What the source's log has
    forgotten, and what Delta refuses to read as an old version, is read along with what follows.

    Args:
        spec: whose batch it is.
        sources: all that there is to read.
        paths: the lakehouse.
        readable_since: the source's versions of before cannot be read any more, unless they are the newest.
    """
    if spec.max_rows_per_batch is None and spec.max_files_per_batch is None:
        return sources
    after, upto = sources.ranges[spec.source]
    end = _end(spec, _commits(paths.table(spec.source), after, upto), readable_since)
    return sources.model_copy(update={"ranges": {spec.source: (after, upto if end is None else end)}})


def _end(spec: SilverSpec, commits: Iterable[Commit], readable_since: datetime) -> int | None:
    """The last version that a batch takes; None where it takes all."""
    rows = files = 0
    end: int | None = None
    for commit in commits:
        rows, files = rows + _rows(commit), files + (len(commit.added) if commit.changes_data else 0)
        if end is not None and _too_many(rows, spec.max_rows_per_batch, files, spec.max_files_per_batch):
            return end
        end = commit.version if commit.at >= readable_since else end
    return None


def _commits(table: LakePath, after: int | None, upto: int) -> Iterator[Commit]:
    """The commits of (after, upto] that the log still has."""
    return takewhile(lambda commit: commit.version <= upto, commits_still_known(table, after))


def _rows(commit: Commit) -> int:
    return int(commit.metrics.get("numOutputRows", 0)) if commit.changes_data else 0


def _too_many(rows: int, most_rows: int | None, files: int, most_files: int | None) -> bool:
    return (most_rows is not None and rows > most_rows) or (most_files is not None and files > most_files)

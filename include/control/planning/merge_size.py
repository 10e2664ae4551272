"""About how much a merge has to read and write: what a driver must know before its JVM starts.

The JVM's second compiler pays from some millions of copied rows on (`benchmarks/README.md`, series 8), and can be asked
for only when a JVM starts. Which files a batch touches is known far later; but batches of a table are much like the one
before them.
"""

from __future__ import annotations

from collections.abc import Mapping

from include.control.log.delta_log import Commit, read_commit
from include.control.log.stored_tables import open_table
from include.paths import LakehousePaths


def bytes_of_batch(
    table: str, last_version: int | None, ranges: Mapping[str, tuple[int | None, int]], paths: LakehousePaths
) -> int:
    """The bytes of the sources that are read from their beginning, and of the files that the last merge had to copy.

    Args:
        table: the table that is merged into.
        last_version: the version that its last batch made; None before the first one.
        ranges: source table -> (version consumed, version to consume up to).
        paths: where tables are.
    """
    whole = sum(_bytes_at(paths, source, upto) for source, (after, upto) in ranges.items() if after is None)
    last = read_commit(paths.table(table), last_version) if last_version is not None else None
    return whole + (bytes_copied(last) if last else 0)


def bytes_copied(merge: Commit) -> int:
    """The bytes of the data files that a MERGE has replaced by others.

    >>> bytes_copied(Commit(version=3, operation="MERGE", metrics={"numTargetBytesRemoved": "17120302"}))
    17120302
    """
    return int(merge.metrics.get("numTargetBytesRemoved", 0))


def _bytes_at(paths: LakehousePaths, table: str, version: int) -> int:
    actions = open_table(paths.table(table), version=version).get_add_actions(flatten=True)
    return sum(actions["size_bytes"].to_pylist())

"""An estimate of the bytes that a merge reads and writes, which a driver needs before its JVM starts.

The JVM's second compiler pays off from some millions of copied rows on (`benchmarks/README.md`, series 8), and can be
switched on only when a JVM starts. The files that a batch touches are known much later; but batches of a table are
similar to the batch before them.
"""

from __future__ import annotations

from collections.abc import Mapping

from include.control.log.delta_log import Commit, read_commit
from include.control.log.stored_tables import open_table
from include.paths import LakehousePaths


def bytes_of_batch(
    table: str, last_version: int | None, ranges: Mapping[str, tuple[int | None, int]], paths: LakehousePaths
) -> int:
    """Return the bytes of the sources that are read from their beginning, and of the files that the last merge copied.

    Args:
        table: the table that is merged into.
        last_version: the version of its last batch; None before the first batch.
        ranges: source table -> (version consumed, version to consume up to).
        paths: the lakehouse.
    """
    new_sources = {source: upto for source, (after, upto) in ranges.items() if after is None}
    tables = [open_table(paths.table(source), version=upto) for source, upto in new_sources.items()]
    source_bytes = sum(sum(each.get_add_actions(flatten=True)["size_bytes"].to_pylist()) for each in tables)
    last = read_commit(paths.table(table), last_version) if last_version is not None else None
    return source_bytes + (bytes_copied(last) if last else 0)


def bytes_copied(merge: Commit) -> int:
    """Return the bytes of the data files that a MERGE has replaced.

    >>> bytes_copied(Commit(version=3, operation="MERGE", metrics={"numTargetBytesRemoved": "17120302"}))
    17120302
    """
    return int(merge.metrics.get("numTargetBytesRemoved", 0))

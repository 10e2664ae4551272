"""What a table consists of, and what a commit did to it: read from the log, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from include.control.delta_log import latest_version, read_commit

MERGE_METRICS = (
    "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsCopied", "numTargetFilesRemoved",
    "numTargetFilesAdded", "numTargetBytesRemoved", "numTargetBytesAdded", "numTargetChangeFilesAdded",
)  # fmt: skip


def files_and_bytes(table: Path) -> str:
    """The data files of the newest version, and their size."""
    sizes = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True)).column("size_bytes").to_pylist()
    return f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"


def newest_commit(table: Path) -> dict[str, int]:
    """The metrics of the newest commit, those of a MERGE."""
    commit = read_commit(table, latest_version(table))
    metrics = commit.metrics if commit else {}
    return {name: int(metrics[name]) for name in MERGE_METRICS if name in metrics}

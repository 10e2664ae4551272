"""What a table consists of, and what a commit did to it: read from the log, without Spark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from include.control.log.delta_log import latest_version, read_commit
from include.control.storage.json_lines import json_lines

MERGE_METRICS = (
    "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsCopied", "numTargetFilesRemoved",
    "numTargetFilesAdded", "numTargetBytesRemoved", "numTargetBytesAdded", "numTargetChangeFilesAdded",
)  # fmt: skip


def files_and_bytes(table: Path) -> str:
    """The data files of the newest version, and their size."""
    sizes = _files(table).column("size_bytes").to_pylist()
    return f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"


def bytes_in(table: Path) -> int:
    """The size of the data files of the newest version."""
    return sum(_files(table).column("size_bytes").to_pylist())


def key_ranges(table: Path, key: str) -> list[tuple[int, int]]:
    """The least and the greatest key of each data file of the newest version, in their order.

    A Z-ordered table's files may overlap a little where one ends and the next begins: what two have goes to the first.
    """
    files = _files(table)
    found = sorted(zip(files.column(f"min.{key}").to_pylist(), files.column(f"max.{key}").to_pylist(), strict=True))
    ranges: list[tuple[int, int]] = []
    for low, high in found:
        begin = max(low, ranges[-1][1] + 1) if ranges else low
        if begin <= high:
            ranges.append((begin, high))
    return ranges


def newest_commit(table: Path) -> dict[str, int]:
    """The metrics of the newest commit, those of a MERGE."""
    commit = read_commit(table, latest_version(table))
    metrics = commit.metrics if commit else {}
    return {name: int(metrics[name]) for name in MERGE_METRICS if name in metrics}


def files_written(table: Path) -> int:
    """How many data files the newest commit has added."""
    commit = table / "_delta_log" / f"{latest_version(table):020d}.json"
    return sum("add" in line.value for line in json_lines(commit.read_text(encoding="utf-8")))


def linked_copy(lake: Path, copy: Path) -> Path:
    """A copy of a lake for a run of its own; what is at `copy` is removed.

    Data files never change, so they are linked; logs, leases and the ledger's own logs are copied.
    """
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(lake, copy, copy_function=_link_or_copy)
    return copy


def _files(table: Path) -> pa.Table:
    return pa.table(DeltaTable(str(table)).get_add_actions(flatten=True))


def _link_or_copy(source: str, target: str) -> None:
    is_data = source.endswith(".parquet") and "_delta_log" not in Path(source).parts
    (os.link if is_data else shutil.copy2)(source, target)

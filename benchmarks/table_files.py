"""A table's files and the changes of its commits, read from the log without Spark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from millrace.control.log.delta_log import latest_version, read_commit
from millrace.control.storage.json_lines import json_lines

MERGE_METRICS = (
    "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsCopied", "numTargetFilesRemoved",
    "numTargetFilesAdded", "numTargetBytesRemoved", "numTargetBytesAdded", "numTargetChangeFilesAdded",
)  # fmt: skip


def files_and_bytes(table: Path) -> str:
    """Return number and size of the data files of the newest version, as text."""
    sizes = _files(table).column("size_bytes").to_pylist()
    return f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"


def bytes_in(table: Path) -> int:
    """Return the size in bytes of the data files of the newest version."""
    return sum(_files(table).column("size_bytes").to_pylist())


def key_ranges(table: Path, key: str) -> list[tuple[int, int]]:
    """Return the least and the greatest key of each data file of the newest version, sorted.

    Neighbouring files of a Z-ordered table may overlap a little; keys in two files belong to the first.
    """
    files = _files(table)
    bounds = sorted(zip(files.column(f"min.{key}").to_pylist(), files.column(f"max.{key}").to_pylist(), strict=True))
    ranges: list[tuple[int, int]] = []
    for low, high in bounds:
        begin = max(low, ranges[-1][1] + 1) if ranges else low
        if begin <= high:
            ranges.append((begin, high))
    return ranges


def newest_commit(table: Path) -> dict[str, int]:
    """Return the MERGE metrics of the newest commit."""
    commit = read_commit(table, latest_version(table))
    metrics = commit.metrics if commit else {}
    return {name: int(metrics[name]) for name in MERGE_METRICS if name in metrics}


def files_written(table: Path) -> int:
    """Return the number of data files that the newest commit added."""
    commit = table / "_delta_log" / f"{latest_version(table):020d}.json"
    return sum("add" in line.value for line in json_lines(commit.read_text(encoding="utf-8")))


def linked_copy(lake: Path, copy: Path) -> Path:
    """Copy a lake to `copy`, whose old content is removed, and return `copy`.

    Data files never change, so they are linked; logs, leases and the ledger's logs are copied.
    """
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(lake, copy, copy_function=_link_or_copy)
    return copy


def _files(table: Path) -> pa.Table:
    return pa.table(DeltaTable(str(table)).get_add_actions(flatten=True))


def _link_or_copy(source: str, target: str) -> None:
    is_data = source.endswith(".parquet") and "_delta_log" not in Path(source).parts
    (os.link if is_data else shutil.copy2)(source, target)

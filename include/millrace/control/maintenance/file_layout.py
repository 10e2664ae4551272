"""Measure how the data files of a table are laid out, and decide what OPTIMIZE does.

A MERGE copies every file with a matching key as a whole. Small files mean less copying; many files mean a long log and
many opens. ADR 0020 weighs the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat

import pyarrow as pa

from millrace.contracts.counted import counted
from millrace.contracts.spec.common_settings import TableSpec
from millrace.contracts.spec.table_spec import GoldSpec

MIB = 1024**2
LEAST_FILE, GREATEST_FILE = 16 * MIB, 1024 * MIB
LEAST_COMPUTED_FILE = 2 * MIB
"""The least size for tables that are computed from others, such as gold: their rows are narrow, and 16 MiB would be
millions of them, which a refresh copies for the sake of a few (ADR 42)."""

FILES_PER_TABLE = 1000
"""The number of files that a table should have, as far as `LEAST_FILE` and `GREATEST_FILE` allow."""

LEAST_SMALL_FILES = 8
"""OPTIMIZE compacts a table with at least this number of small files."""

LEAST_WRITTEN_SHARE = 0.2
"""OPTIMIZE Z-orders a table again once batches have written this share of its bytes since the last time."""


class Rewrite(StrEnum):
    """The work of OPTIMIZE."""

    NONE = "none"
    BIN_PACK = "bin-pack"
    Z_ORDER = "z-order"


@dataclass(frozen=True)
class DataFile:
    """One data file of a version.

    Attributes:
        partition: the values of the partition columns.
        size: bytes.
        written: whether a batch has written it since the table was last Z-ordered.
    """

    partition: tuple[object, ...]
    size: int
    written: bool = True


@dataclass(frozen=True)
class FileLayout:
    """How the data files of a table's newest version are laid out.

    The only file of a partition cannot be compacted with another. It counts as ordered, unless it is so large that
    it should be several files.

    Attributes:
        files: number of files.
        size: their bytes.
        target_file_bytes: the size that they should have.
        small_files: number of files below half the target that share their partition with another small file.
        small_bytes: their bytes.
        written_share: share of the table's bytes, from 0 to 1, that batches have written since the last Z-order,
            without the only files of partitions.
    """

    files: int
    size: int
    target_file_bytes: int
    small_files: int
    small_bytes: int
    written_share: float

    def reason(self, *, ordered: bool) -> str:
        """Say in one line why the table is rewritten or left as it is."""
        files = counted(self.files, "file")
        small = f"{self.small_files:,} of {files} could be joined (OPTIMIZE needs {LEAST_SMALL_FILES})"
        new = f"{100 * self.written_share:.0f} % of the bytes are in no order"
        share = f"{new} (Z-order needs {100 * LEAST_WRITTEN_SHARE:.0f} %)"
        return f"{small}; {share}" if ordered else small

    def rewrite(self, *, ordered: bool) -> Rewrite:
        """Decide what OPTIMIZE does; `ordered` says whether the spec names columns to Z-order by.

        >>> FileLayout(40, 99 * MIB, 16 * MIB, small_files=9, small_bytes=MIB, written_share=0.1).rewrite(ordered=True)
        <Rewrite.BIN_PACK: 'bin-pack'>
        """
        if ordered and self.written_share >= LEAST_WRITTEN_SHARE:
            return Rewrite.Z_ORDER
        return Rewrite.BIN_PACK if self.small_files >= LEAST_SMALL_FILES else Rewrite.NONE


def layout_of_files(files: Sequence[DataFile], spec: TableSpec) -> FileLayout:
    """Measure data files of a table against the size that suits it."""
    total = sum(file.size for file in files)
    target = target_file_bytes(spec, total)
    of_partition = Counter(file.partition for file in files)
    below_half = [file for file in files if file.size < target // 2]
    small = Counter(file.partition for file in below_half)
    written = [file.size for file in files if file.written]
    alone = [file.size for file in files if file.written and of_partition[file.partition] == 1]
    ordered = sum(size for size in alone if size < 2 * target)
    return FileLayout(
        files=len(files),
        size=total,
        target_file_bytes=target,
        small_files=sum(count for count in small.values() if count > 1),
        small_bytes=sum(file.size for file in below_half if small[file.partition] > 1),
        written_share=(sum(written) - ordered) / total if total else 0.0,
    )


def target_file_bytes(spec: TableSpec, table_bytes: int) -> int:
    """Return the file size that suits a table: what its spec states, or a thousandth of its bytes within limits."""
    least = LEAST_COMPUTED_FILE if isinstance(spec, GoldSpec) else LEAST_FILE
    return spec.maintenance.target_file_size or min(max(table_bytes // FILES_PER_TABLE, least), GREATEST_FILE)


def rows_per_file(spec: TableSpec, stored_bytes: int, stored_rows: int, columns: int, expected_bytes: int) -> int:
    """Return after how many rows a writer of a table begins another file.

    Args:
        spec: the spec of the table.
        stored_bytes, stored_rows: what the table has now.
        columns: the number of its columns.
        expected_bytes: what it may have once it is written, if it now has less than a file should have. Then its rows
            say little, and each value counts as one byte: files that are too large are cut by the next write, but those
            that are too small are joined by OPTIMIZE, in no order.
    """
    target = target_file_bytes(spec, stored_bytes)
    if stored_rows and stored_bytes >= target:
        return max(target * stored_rows // stored_bytes, 1)
    return max(target_file_bytes(spec, expected_bytes) // columns, 1)


def data_files(listed: pa.Table, ordered_ms: int) -> list[DataFile]:
    """Return the data files that a log lists (`logged_files`); those from before `ordered_ms` are in order."""
    partitions = [listed[name].to_pylist() for name in listed.column_names if name.startswith("partition.")]
    keys = zip(*partitions, strict=True) if partitions else repeat(())
    sizes, written_ms = (listed[name].to_pylist() for name in ("size_bytes", "modification_time"))
    files = zip(keys, sizes, written_ms, strict=False)
    return [DataFile(partition, size, at_ms > ordered_ms) for partition, size, at_ms in files]

"""How a table's data files lie, and what is to be done about it: read from its log alone, without Spark.

A MERGE copies every file that holds one of its keys, whole. So files are to be small against what a batch touches, and
many enough to be told apart by their keys; yet each costs an entry in the log and an opening (ADR 0020).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from include.contracts.lake_path import LakePath
from include.contracts.spec.table_spec import TableSpec
from include.control.log.stored_tables import open_table

MIB = 1024**2
LEAST_FILE, GREATEST_FILE = 16 * MIB, 1024 * MIB
FILES_A_TABLE = 1000
"""A table is to have about so many files, as far as `LEAST_FILE` and `GREATEST_FILE` allow."""

SMALL_FILES_WORTH_A_RUN = 8
"""Fewer small files are not worth rewriting."""

WRITTEN_WORTH_AN_ORDER = 0.2
"""The share of a table that batches have written since it was Z-ordered, from which on it is Z-ordered again."""


class Rewrite(StrEnum):
    """What OPTIMIZE is to do."""

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
class Health:
    """How the files of a table's newest version lie.

    A file that is alone in its partition can be put together with none. It is in order, unless it is so large that
    there should be several.

    Attributes:
        files: how many there are.
        target_file_bytes: how large they should be.
        small_files: how many of less than half of that share their partition with another small one.
        written_share: the part of the table's bytes that batches have written since it was last Z-ordered, from 0 to
            1, without files that are in order for being alone.
    """

    files: int
    target_file_bytes: int
    small_files: int
    written_share: float

    def said(self, *, ordered: bool) -> str:
        """Why the table is rewritten or left, in one line."""
        small = f"{self.small_files} small files of {self.files}, {SMALL_FILES_WORTH_A_RUN} are worth a run"
        share = f"{self.written_share:.0%} written since the last Z-order, {WRITTEN_WORTH_AN_ORDER:.0%} are"
        return f"{small}; {share}" if ordered else small

    def rewrite(self, *, ordered: bool) -> Rewrite:
        """What OPTIMIZE is to do for a table that has an order to keep, or none.

        >>> Health(files=40, target_file_bytes=16 * MIB, small_files=9, written_share=0.1).rewrite(ordered=True).value
        'bin-pack'
        """
        if ordered and self.written_share >= WRITTEN_WORTH_AN_ORDER:
            return Rewrite.Z_ORDER
        return Rewrite.BIN_PACK if self.small_files >= SMALL_FILES_WORTH_A_RUN else Rewrite.NONE


def health_of(table: LakePath, spec: TableSpec) -> Health:
    """How the files of the newest version lie."""
    delta = open_table(table)
    ordered_at_ms = _last_z_order_ms(delta, spec.zorder_by)
    return judged(_data_files(delta, ordered_at_ms), spec.maintenance.target_file_size)


def judged(files: Sequence[DataFile], target: int | None = None) -> Health:
    """How these files lie; their size should be `target` bytes, or what suits the table.

    >>> judged([DataFile((), 3 * MIB), DataFile((), 2 * MIB), DataFile((), 35 * MIB, written=False)])
    Health(files=3, target_file_bytes=16777216, small_files=2, written_share=0.125)
    """
    total = sum(file.size for file in files)
    wanted = target or target_file_bytes(total)
    of_partition = Counter(file.partition for file in files)
    small = Counter(file.partition for file in files if file.size < wanted // 2)
    written = [file.size for file in files if file.written]
    alone = [file.size for file in files if file.written and of_partition[file.partition] == 1]
    in_order = sum(size for size in alone if size < 2 * wanted)
    return Health(
        files=len(files),
        target_file_bytes=wanted,
        small_files=sum(count for count in small.values() if count > 1),
        written_share=(sum(written) - in_order) / total if total else 0.0,
    )


def target_file_bytes(table_bytes: int) -> int:
    """How large the files of a table of so many bytes should be: a thousandth, from 16 MiB to 1 GiB.

    >>> target_file_bytes(500 * MIB) // MIB, target_file_bytes(100_000 * MIB) // MIB
    (16, 100)
    """
    return min(max(table_bytes // FILES_A_TABLE, LEAST_FILE), GREATEST_FILE)


def _data_files(delta: DeltaTable, ordered_at_ms: int) -> list[DataFile]:
    actions = pa.table(delta.get_add_actions(flatten=True))
    partitions = [actions[name].to_pylist() for name in actions.column_names if name.startswith("partition.")]
    keys = zip(*partitions, strict=True) if partitions else repeat(())
    sizes, written_at_ms = (actions[name].to_pylist() for name in ("size_bytes", "modification_time"))
    files = zip(keys, sizes, written_at_ms, strict=False)
    return [DataFile(partition, size, at_ms > ordered_at_ms) for partition, size, at_ms in files]


def _last_z_order_ms(delta: DeltaTable, zorder_by: Sequence[str]) -> int:
    """When the table was last Z-ordered by these columns, as far as its log remembers; 0 for never.

    What such a commit has written is older than the commit itself.
    """
    by = json.dumps(list(zorder_by), separators=(",", ":"))
    orders = (commit["timestamp"] for commit in delta.history() if _z_ordered_by(commit) == by)
    return max(orders, default=0)


def _z_ordered_by(commit: dict[str, Any]) -> str:
    """The columns by which a commit has Z-ordered the table, as Delta writes them: `["id"]`."""
    is_optimize = commit.get("operation") == "OPTIMIZE"
    return str(commit.get("operationParameters", {}).get("zOrderBy", "")) if is_optimize else ""

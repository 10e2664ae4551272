"""The files of a table: how many, how large, since when in order, and what the next maintenance does with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, pairwise
from math import inf
from typing import Any

from deltalake.exceptions import TableNotFoundError

from millrace.contracts.counted import counted
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.ledger.commit_history import CommitHistory
from millrace.control.log.delta_log import COMMIT, commit_actions, versions_in
from millrace.control.log.stored_tables import open_table
from millrace.control.maintenance.health import (
    MIB,
    Health,
    Rewrite,
    data_files,
    health_of_files,
    is_z_order,
)
from millrace.control.storage.stored_files import names_in
from millrace.paths import LakehousePaths

_MOST_OPTIMIZES = 20
"""The number of past OPTIMIZE commits among which the last Z-order is searched."""

_SIZES = (1, 16, 64, 256, 1024)
"""The ends of the classes of file sizes, in MiB."""


@dataclass(frozen=True)
class SizeClass:
    """The files whose size is in one class.

    Attributes:
        name: the class, such as `1 to 16 MiB`.
        files: the number of files.
        size: their bytes.
    """

    name: str
    files: int
    size: int


@dataclass(frozen=True)
class LogLength:
    """The length of a table's log.

    Attributes:
        commits: the number of commits that it still has.
        after_checkpoint: how many of them a reader reads after the last checkpoint.
    """

    commits: int
    after_checkpoint: int


@dataclass(frozen=True)
class Storage:
    """The files of a table's newest version.

    Attributes:
        version: the version.
        health: the measures by which maintenance decides.
        zorder_by: the columns by which its spec orders the rows.
        is_off: whether its spec turns OPTIMIZE off.
        classes: the files by size, the smallest class first.
        partitions: the number of partitions with files.
        log: the length of its log.
        ordered_at: when it was last Z-ordered by these columns; None if the ledger does not know.
        optimized_at: when OPTIMIZE last committed; None if the ledger does not know.
        vacuumed_at: when VACUUM last committed; None if the ledger does not know.
    """

    version: int
    health: Health
    zorder_by: Sequence[str]
    is_off: bool
    classes: Sequence[SizeClass]
    partitions: int
    log: LogLength
    ordered_at: datetime | None = None
    optimized_at: datetime | None = None
    vacuumed_at: datetime | None = None

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.size for each in self.classes)

    @property
    def small_share(self) -> float:
        """The share of small files, from 0 to 1."""
        return self.health.small_files / self.health.files if self.health.files else 0.0

    @property
    def next_rewrite(self) -> Rewrite:
        """What the next OPTIMIZE does."""
        return Rewrite.NONE if self.is_off else self.health.rewrite(ordered=bool(self.zorder_by))

    @property
    def reason(self) -> str:
        """Why the next OPTIMIZE does this."""
        return "the spec says optimize: off" if self.is_off else self.health.reason(ordered=bool(self.zorder_by))

    @property
    def answer(self) -> str:
        """One sentence: what the next maintenance does with the files."""
        match self.next_rewrite:
            case Rewrite.NONE:
                return "The next maintenance leaves the files as they are."
            case Rewrite.BIN_PACK:
                return f"The next maintenance joins {counted(self.health.small_files, 'small file')}."
        columns, share = ", ".join(self.zorder_by), f"{self.health.written_share:.0%}"
        return f"The next maintenance rewrites the table in the order of {columns}: {share} of it is new."


def storage_of(spec: AnySpec, paths: LakehousePaths, commits: CommitHistory) -> Storage | None:
    """Measure the newest version of a table by its log; None if it was never written."""
    path = paths.table(spec.table)
    try:
        delta = open_table(path)
    except TableNotFoundError:
        return None
    ordered_at_ms = _last_z_order_ms(path, spec, commits) if spec.zorder_by else 0
    files = data_files(delta, ordered_at_ms)
    return Storage(
        version=delta.version(),
        health=health_of_files(files, spec),
        zorder_by=spec.zorder_by,
        is_off=spec.maintenance.optimize == "off",
        classes=_size_classes([file.size for file in files]),
        partitions=len({file.partition for file in files}),
        log=_log_length(path, delta.version()),
        ordered_at=datetime.fromtimestamp(ordered_at_ms / 1000, UTC) if ordered_at_ms else None,
        optimized_at=_last_at(spec.table, "OPTIMIZE", commits),
        vacuumed_at=_last_at(spec.table, "VACUUM", commits),
    )


def _last_z_order_ms(table: LakePath, spec: AnySpec, commits: CommitHistory) -> int:
    """Return when the table was last Z-ordered, in ms; 0 if none of the last OPTIMIZE commits did it.

    The ledger knows the versions of these commits, so that nobody reads the whole log for them.
    """
    for write in islice(commits.newest(spec.table, "OPTIMIZE"), _MOST_OPTIMIZES):
        info = _commit_info(table, -1 if write.version is None else write.version)
        if is_z_order(info, spec.zorder_by):
            return int(info["timestamp"])
    return 0


def _commit_info(table: LakePath, version: int) -> dict[str, Any]:
    try:
        actions = commit_actions(table, version)
    except FileNotFoundError:
        return {}
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})


def _last_at(table: str, operation: str, commits: CommitHistory) -> datetime | None:
    return next((write.at for write in commits.newest(table, operation)), None)


def _size_classes(sizes: Sequence[int]) -> list[SizeClass]:
    """Return the classes of some file sizes in bytes; all of them, so that tables can be compared."""
    names = ["under 1 MiB", *(f"{low} to {high} MiB" for low, high in pairwise(_SIZES)), "1 GiB and more"]
    classes = []
    for name, (least, end) in zip(names, pairwise((0, *_SIZES, inf)), strict=True):
        inside = [size for size in sizes if least * MIB <= size < end * MIB]
        classes.append(SizeClass(name, len(inside), sum(inside)))
    return classes


def _log_length(table: LakePath, version: int) -> LogLength:
    names = [name for name in names_in(table / "_delta_log") if name[:20].isdigit()]
    commits = versions_in(names, COMMIT)
    # Other writers also write checkpoints in parts.
    checkpoint = max((int(name[:20]) for name in names if name[20:].startswith(".checkpoint")), default=-1)
    return LogLength(len(commits), sum(checkpoint < at <= version for at in commits))

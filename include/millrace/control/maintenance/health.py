"""Measure the health of a table from its log, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, partial
from itertools import pairwise
from math import inf

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from millrace.catalog import Catalog
from millrace.contracts.counted import counted
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverSpec
from millrace.control.changes.table_properties import (
    LOG_KEPT_FOR,
    KeptFor,
    PropertyChange,
    changes_of_properties,
    differing,
)
from millrace.control.ledger.holds import Hold
from millrace.control.log.followed_tables import newest_table
from millrace.control.log.stored_tables import identity, is_table, logged_files, open_table
from millrace.control.maintenance.file_layout import MIB, FileLayout, Rewrite, data_files, layout_of_files
from millrace.control.maintenance.log_files import LogHealth, expired_commits, log_health, needed_version, read_commits
from millrace.control.maintenance.maintained import Maintained, maintained
from millrace.control.maintenance.old_files import OldFile, OldFiles, old_files
from millrace.control.maintenance.retention import Reader, readers_in_danger, readers_of, retention_of
from millrace.control.ops_tables import OpsTables
from millrace.control.storage.stored_files import files_below
from millrace.paths import LakehousePaths

_SIZES = (1, 16, 64, 256, 1024)
"""The ends of the classes of file sizes, in MiB."""

_GIB, _TIB = 1024 * MIB, 1024 * 1024 * MIB
"""Below a TiB a table needs no partitions, and below a GiB of each they cost more than they save (Delta's guide)."""

_READER_VERSION = 1
"""The reader version of Delta that all readers of the tables of Millrace have."""


LOST_HOLD = f"the table itself says that it is held ({LOG_KEPT_FOR}), but ops.holds has no such hold"
AFTER_LOST_HOLD = (
    "Restore ops/holds from a backup, or set the hold again (lakehouse hold set), and release it if it has ended."
)
"""What is wrong if the ledger has lost a hold, and what helps."""


class StorageState(StrEnum):
    """The state of a table's storage, the best first."""

    IN_ORDER = "in order"
    TO_MAINTAIN = "to be maintained"
    HELD_BACK = "VACUUM held back"
    NEEDS_PERSON = "needs a person"


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
class BesideTable:
    """A table that the batches of a table write as well: its `quarantine`, or its `tombstones`.

    Attributes:
        name: which.
        layout: how its data files are laid out.
        old: the files that its newest version does not need.
        log: the state of its log.
    """

    name: str
    layout: FileLayout
    old: OldFiles
    log: LogHealth

    @property
    def has_small_files(self) -> bool:
        """Whether OPTIMIZE joins its small files."""
        return self.layout.rewrite(ordered=False) is not Rewrite.NONE


@dataclass(frozen=True)
class TableHealth:
    """The health of a table's newest version.

    Attributes:
        table: the table.
        version: the version.
        rows: its rows; None if the log lacks the count of a file.
        layout: how its data files are laid out, by which OPTIMIZE decides.
        classes: its files by size, the smallest class first.
        partitions: the number of partitions with files.
        zorder_by: the columns by which its spec orders the rows.
        is_off: whether its spec turns OPTIMIZE off.
        maintained: when it was last maintained.
        old: the files that it does not need.
        retention: how long VACUUM keeps those: as the spec says, or longer if the table itself still says so.
        log: the state of its log.
        readers: the readers of the table, each with its version.
        in_danger: those of them for whose sake VACUUM is refused.
        outside: readers that Millrace does not know, by the spec: name -> how long it reads one version.
        holds: the holds on the table.
        beside: its quarantine and its tombstones, as far as they exist.
        properties: its properties that are not as its spec says.
        unskippable: the columns by which rows are found, but of which files have no statistics.
        advice: what its owner could change.
        problems: what only a person can mend; each is a sentence.
    """

    table: str
    version: int
    rows: int | None
    layout: FileLayout
    classes: Sequence[SizeClass]
    partitions: int
    zorder_by: Sequence[str]
    is_off: bool
    maintained: Maintained
    old: OldFiles
    retention: timedelta
    log: LogHealth
    readers: Sequence[Reader] = ()
    in_danger: Sequence[Reader] = ()
    outside: Mapping[str, str] = field(default_factory=dict)
    holds: Sequence[Hold] = ()
    beside: Sequence[BesideTable] = ()
    properties: Sequence[PropertyChange] = ()
    unskippable: Sequence[str] = ()
    advice: Sequence[str] = ()
    problems: Sequence[str] = ()

    @property
    def rewrite(self) -> Rewrite:
        """What the next OPTIMIZE does."""
        return Rewrite.NONE if self.is_off else self.layout.rewrite(ordered=bool(self.zorder_by))

    @property
    def refusals(self) -> Sequence[str]:
        """Why VACUUM deletes nothing of the table, each in one line; empty if nothing holds it back."""
        reasons = [hold.words for hold in self.holds]
        if self.has_lost_hold:
            reasons.append(LOST_HOLD)
        if self.in_danger:
            reasons.append(f"{', '.join(map(str, self.in_danger))} would soon be cut off")
        return reasons

    @property
    def way_out(self) -> str:
        """What lets VACUUM delete again, if something holds it back."""
        if self.has_lost_hold:
            return AFTER_LOST_HOLD
        release = "Release the hold (lakehouse hold release)" if self.holds else ""
        behind = "run what is behind, or get the refused newer versions past their gate" if self.in_danger else ""
        way_out = "; ".join(filter(None, (release, behind)))
        return f"{way_out[:1].upper()}{way_out[1:]}."

    @property
    def has_lost_hold(self) -> bool:
        """Whether the table, or one beside it, says that it is held, though `ops.holds` knows of no hold."""
        return not self.holds and any(log.kept_for is KeptFor.HOLDS for log in self.logs.values())

    @property
    def due(self) -> Sequence[OldFile]:
        """The files that VACUUM deletes now, of the tables beside it, too."""
        return [file for old in (self.old, *(each.old for each in self.beside)) for file in old.due]

    @property
    def needs_approval(self) -> bool:
        """Whether a person has to allow that VACUUM deletes something of the table, or of those beside it."""
        return self.old.needs_approval or any(each.old.needs_approval for each in self.beside)

    @property
    def logs(self) -> dict[str, LogHealth]:
        """The state of its log (of the name ""), and of those of the tables beside it, by their names."""
        return {"": self.log, **{each.name: each.log for each in self.beside}}

    @property
    def without_checkpoint(self) -> dict[str, LogHealth]:
        """The logs of which maintenance writes a checkpoint."""
        return {name: log for name, log in self.logs.items() if log.needs_checkpoint}

    @property
    def uncleaned(self) -> dict[str, LogHealth]:
        """The logs that maintenance cleans; none while a reader or a hold keeps old versions."""
        return {} if self.refusals else {name: log for name, log in self.logs.items() if log.needs_cleaning}

    @property
    def joinable(self) -> Sequence[BesideTable]:
        """The tables beside it whose small files the next OPTIMIZE joins."""
        return () if self.is_off else [each for each in self.beside if each.has_small_files]

    @property
    def ordered_at(self) -> datetime | None:
        """When it was last Z-ordered by the columns of its spec; None if the log does not know."""
        return self.maintained.ordered_at if self.maintained.ordered_ms(self.zorder_by) else None

    @property
    def slowest(self) -> Reader | None:
        """The reader whose version is the oldest; None if all have the newest."""
        behind = [reader for reader in self.readers if reader.since is not None]
        return min(behind, key=lambda reader: reader.version, default=None)

    @property
    def storage(self) -> StorageState:
        """The state of its storage."""
        if self.problems or self.has_lost_hold:
            return StorageState.NEEDS_PERSON
        if self.refusals:
            return StorageState.HELD_BACK
        due = (self.joinable, self.due, self.properties, self.without_checkpoint, self.uncleaned)
        is_due = self.rewrite is not Rewrite.NONE or any(due)
        return StorageState.TO_MAINTAIN if is_due else StorageState.IN_ORDER

    @property
    def reason(self) -> str:
        """Why, in one line."""
        if self.problems:
            return self.problems[0]
        if self.refusals:
            return "; ".join(self.refusals)
        due = f"{counted(len(self.due), 'file')} that nobody needs may be deleted" if self.due else ""
        layout = "the spec says optimize: off" if self.is_off else self.layout.reason(ordered=bool(self.zorder_by))
        beside = [f"{each.name}: {each.layout.reason(ordered=False)}" for each in self.joinable]
        logs = (read_commits(self.without_checkpoint), expired_commits(self.uncleaned))
        return "; ".join(filter(None, (layout, *beside, due, differing(self.properties), *logs)))

    @property
    def answer(self) -> str:
        """One sentence: what the next OPTIMIZE does with the files."""
        match self.rewrite:
            case Rewrite.NONE:
                return "The next maintenance leaves the files as they are."
            case Rewrite.BIN_PACK:
                return f"The next maintenance joins {counted(self.layout.small_files, 'small file')}."
        columns, share = ", ".join(self.zorder_by), f"{self.layout.written_share:.0%}"
        return f"The next maintenance rewrites the table in the order of {columns}: {share} of it is new."


def beside_folders(table: str, table_id: str, paths: LakehousePaths) -> dict[str, LakePath]:
    """Return the folders of the tables that the batches of a table may write as well, by their names."""
    return {"quarantine": paths.quarantine(table), "tombstones": paths.tombstones(table, table_id)}


def table_health(spec: AnySpec, catalog: Catalog, ops: OpsTables, now: datetime) -> TableHealth | None:
    """Measure the newest version of a table; None if it was never written.

    Raises:
        TornLogError: its log cannot be read.
        MillraceError: its retention has an unknown form.
    """
    path = ops.paths.table(spec.table)
    try:
        newest = newest_table(path)  # which the streams of its readers ask for as well: opening it is what costs
        delta = newest.definition if newest.definition.version() == newest.version else open_table(path)
    except TableNotFoundError:
        return None
    known = maintained(ops, spec.table, identity(delta))
    listed, metadata, stored = logged_files(delta), delta.metadata(), list(files_below(path))
    files = data_files(listed, known.ordered_ms(spec.zorder_by))
    layout, partitions = layout_of_files(files, spec), len({file.partition for file in files})
    kept, readers = old_files(path, delta, stored, now, retention_of(spec)), readers_of(spec, catalog, ops)
    needed = cache(partial(needed_version, spec, ops, readers))
    erased = [each.recorded_at for each in ops.erasures.in_table(spec.table) if each.recorded_at]
    erased_at = max(erased, default=None)
    return TableHealth(
        table=spec.table,
        version=delta.version(),
        rows=_rows(listed),
        layout=layout,
        classes=_size_classes([file.size for file in files]),
        partitions=partitions,
        zorder_by=spec.zorder_by,
        is_off=spec.maintenance.optimize == "off",
        maintained=known,
        old=kept,
        retention=kept.retention,
        log=log_health(delta, path, stored, needed, now, erased_at),
        readers=readers,
        in_danger=readers_in_danger(readers, kept.retention, now),
        outside=spec.maintenance.vacuum.readers,
        holds=ops.holds.on(spec.table),
        beside=tuple(
            _beside(name, folder, spec, needed, now, erased_at)
            for name, folder in beside_folders(spec.table, known.table_id, ops.paths).items()
            if is_table(folder)
        ),
        properties=changes_of_properties(spec, delta, ops.specs),
        unskippable=tuple(_without_statistics(listed, spec, metadata.partition_columns)),
        advice=tuple(_advice(layout.size, partitions, metadata.partition_columns)),
        problems=tuple(_problems(delta)),
    )


def _beside(
    name: str, path: LakePath, spec: AnySpec, needed: Callable[[], int], now: datetime, erased_at: datetime | None
) -> BesideTable:
    delta, stored = open_table(path), list(files_below(path))
    layout = layout_of_files(data_files(logged_files(delta), 0), spec)
    # Nobody reads an old version of it, but for a batch that is counted again, or that a restore undoes.
    log = log_health(delta, path, stored, lambda: delta.version() if needed() else 0, now, erased_at)
    return BesideTable(name, layout, old_files(path, delta, stored, now, retention_of(spec)), log)


def _rows(listed: pa.Table) -> int | None:
    counts = listed["num_records"].to_pylist() if "num_records" in listed.column_names else [None]
    return sum(counts) if None not in counts else None


def _size_classes(sizes: Sequence[int]) -> list[SizeClass]:
    """Return the classes of some file sizes in bytes; all of them, so that tables can be compared."""
    names = ["under 1 MiB", *(f"{low} to {high} MiB" for low, high in pairwise(_SIZES)), "1 GiB and more"]
    classes = []
    for name, (least, end) in zip(names, pairwise((0, *_SIZES, inf)), strict=True):
        inside = [size for size in sizes if least * MIB <= size < end * MIB]
        classes.append(SizeClass(name, len(inside), sum(inside)))
    return classes


def _without_statistics(listed: pa.Table, spec: AnySpec, partitioned_by: Sequence[str]) -> Iterator[str]:
    """Yield the columns by which merges, refreshes and readers find rows, but which some file has no statistics of."""
    keys = spec.keys if isinstance(spec, SilverSpec) else spec.refresh_columns if isinstance(spec, GoldSpec) else ()
    for column in dict.fromkeys((*keys, *spec.zorder_by)):
        name = f"null_count.{column}"
        if column in partitioned_by or not listed.num_rows:
            continue
        if name not in listed.column_names or listed[name].null_count:
            yield column


def _advice(size: int, partitions: int, partitioned_by: Sequence[str]) -> Iterator[str]:
    if partitioned_by and size < _TIB:
        each = "" if size >= _GIB * partitions else ", its partitions on average less than 1 GiB"
        yield (
            f"The table has less than 1 TiB{each}: without `partitioned_by: [{', '.join(partitioned_by)}]`, and with "
            "`zorder_by` instead, it has fewer files"
        )


def _problems(delta: DeltaTable) -> Iterator[str]:
    protocol = delta.protocol()
    if protocol.min_reader_version > _READER_VERSION:
        features = ", ".join(protocol.reader_features or ()) or "no feature named"
        yield (
            f"Readers need version {protocol.min_reader_version} of Delta's protocol ({features}): another system has "
            "raised it, and some readers cannot open the table"
        )

"""What a restore would change, in every place that it touches: the dry run of `lakehouse repair restore`."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from millrace.catalog import Catalog
from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverQuerySpec, SilverSpec
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import Winner
from millrace.control.log.delta_log import latest_version, remaining_commits
from millrace.control.maintenance.retention import readers_of
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_position
from millrace.control.repair.following import why_rebuild
from millrace.control.repair.restoring import secondary_tables
from millrace.reading.stored_version import StoredVersion
from millrace.reading.table_difference import Kind, TableDifference, table_difference
from millrace.repair.backups import Backup, MissingFiles
from millrace.repair.restore_target import RestoreTarget, restore_target

_START_AT = "__START_AT"
_SAMPLES = 5


@dataclass(frozen=True)
class ChangedBatch:
    """A batch whose rows a restore takes out of the table, or puts back.

    Attributes:
        batch_seq: its number.
        version: its version.
        interval: its interval, as `--interval` takes it.
        run_id: the run that made it.
        applied: the rows that it applied; None if its driver died before it had counted them.
        files: the number of its landing files.
    """

    batch_seq: int
    version: int
    interval: str
    run_id: str
    applied: int | None
    files: int


@dataclass(frozen=True)
class SecondaryChange:
    """The quarantine or the tombstones of the table, whose rows go back as well."""

    name: str
    rows_now: int
    rows_after: int


@dataclass(frozen=True)
class Downstream:
    """A table that reads the restored table, directly or not.

    Attributes:
        table: the table.
        rebuild: why it must be rebuilt; empty if it follows by its next run.
    """

    table: str
    rebuild: str = ""

    def __str__(self) -> str:
        if not self.rebuild:
            return f"{self.table}: follows by its next run"
        return f"{self.table}: must be rebuilt (lakehouse rebuild {self.table} --downstream): {self.rebuild}"


@dataclass(frozen=True)
class ReaderPosition:
    """A reader of the table, and the version that it needs."""

    name: str
    version: int


@dataclass(frozen=True)
class RestorePlan:
    """What a restore would change. Its id is the digest of all of it: whoever decides by the id decides exactly that.

    Attributes:
        table: the table.
        table_id: its id.
        newest: its newest version.
        restores: the version whose rows come back.
        no_reload: whether the landing files of undone batches are not loaded again.
        certified: the version that readers use now.
        rows_now: the rows of the newest version.
        rows_after: the rows of the restored version.
        inserted: the number of rows that come back.
        updated: the number of rows that get earlier values.
        deleted: the number of rows that go.
        partitions: the same by partition.
        samples: some of these rows, by their keys.
        columns: column -> the number of updated rows in which it differs; without restricted columns.
        definition: columns that differ themselves.
        undone: the batches whose rows go.
        redone: the batches whose rows come back.
        others: the commits of other tools that are undone as well, each with its version.
        files: the landing files of the undone batches.
        secondary: quarantine and tombstones.
        replays_undone: the number of undone replays, whose rows wait in quarantine again.
        downstream: the tables that read the table, in the order of a run.
        readers: the readers of the table with their versions, the slowest first.
        backup: the folder of the backup that has what the table lost of the version; empty without one.
        taken_at: when it was taken.
        copied_back: what is copied back from it; fewer files if an earlier try was interrupted, so the id has no part
            of it.
    """

    table: str
    table_id: str
    newest: int
    restores: int
    no_reload: bool
    certified: int | None
    rows_now: int
    rows_after: int
    inserted: int
    updated: int
    deleted: int
    partitions: tuple[dict[str, Any], ...]
    samples: tuple[dict[str, Any], ...]
    columns: dict[str, int]
    definition: tuple[str, ...]
    undone: tuple[ChangedBatch, ...]
    redone: tuple[ChangedBatch, ...]
    others: tuple[str, ...]
    files: tuple[str, ...]
    secondary: tuple[SecondaryChange, ...]
    replays_undone: int
    downstream: tuple[Downstream, ...]
    readers: tuple[ReaderPosition, ...]
    backup: str = ""
    taken_at: datetime | None = None
    copied_back: MissingFiles | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """All of it for other programs, with the id, the version that the restore makes, and the command."""
        return {"id": self.id, "makes_version": self.newest + 1, "command": self.command, **asdict(self)}

    @property
    def command(self) -> str:
        """The command that does exactly this, without the reason."""
        more = " --no-reload" if self.no_reload else ""
        source = f"--from {shlex.quote(self.backup)}" if self.backup else f"--to {self.restores}"
        return f"lakehouse repair restore {self.table} {source}{more} --execute {self.id}"

    @property
    def id(self) -> str:
        """The digest of all of it."""
        text = json.dumps(asdict(replace(self, copied_back=None)), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def plan_restore(
    spec: AnySpec,
    version: int,
    catalog: Catalog,
    ops: OpsTables,
    restricted: RestrictedColumns,
    *,
    no_reload: bool = False,
    backup: Backup | None = None,
) -> RestorePlan:
    """Return what a restore of the table to a version would change; nothing is written but what resolving records.

    Raises:
        NotReadyError: there is no table.
        RepairError: the table cannot be restored to it; the message names what would help.
        TornLogError: the log does not continue where the ledger ended.
    """
    target = restore_target(spec, version, catalog, ops, no_reload=no_reload, backup=backup)
    return _plan(target, catalog, ops, restricted, no_reload)


def _plan(
    target: RestoreTarget, catalog: Catalog, ops: OpsTables, restricted: RestrictedColumns, no_reload: bool
) -> RestorePlan:
    spec, table = target.spec, target.spec.table
    path = ops.paths.table(table)
    difference = table_difference(
        StoredVersion(path, target.newest),
        StoredVersion(target.place_of(table, path), target.version),
        keys_of(spec),
        restricted=restricted,
        samples=_SAMPLES,
    )
    undone, redone = ops.ledger.rewound(table, target.table_id, target.newest, target.version)
    files = {file.path for batch in undone for file in ops.ledger.files_of(batch.intent)}
    readers = sorted(readers_of(spec, catalog, ops), key=lambda reader: (reader.version, reader.name))
    return RestorePlan(
        table=table,
        table_id=target.table_id,
        newest=target.newest,
        restores=target.version,
        no_reload=no_reload,
        certified=ops.gates.certified(table),
        rows_now=difference.rows_before,
        rows_after=difference.rows_after,
        inserted=difference.added,
        updated=difference.changed,
        deleted=difference.removed,
        partitions=tuple(_partitions(difference)),
        samples=tuple(
            {"kind": _KINDS[each.kind], "key": dict(each.key)} for each in difference.samples if difference.keys
        ),
        columns={name: rows for name, rows in difference.columns.items() if name not in restricted},
        definition=tuple(
            f"{each.column}: {each.before or 'no column'} becomes {each.after or 'no column'}"
            for each in difference.schema
        ),
        undone=tuple(_changed(batch, ops) for batch in undone),
        redone=tuple(_changed(batch, ops) for batch in redone),
        others=tuple(
            f"version {commit.version}, {commit.operation} by {commit.engine or 'an unknown tool'}"
            for commit in remaining_commits(path, target.version)
            if commit.changes_data and not commit.metadata and not commit.run_id
        ),
        files=tuple(sorted(files)),
        secondary=tuple(_secondary_changes(target, ops)),
        replays_undone=sum(bool(batch.intent.sources.replay) for batch in undone),
        downstream=tuple(_downstream(target, undone, redone, catalog, ops)),
        readers=tuple(ReaderPosition(reader.name, reader.version) for reader in readers),
        backup=str(target.backup.folder) if target.backup else "",
        taken_at=target.backup.manifest.taken_at if target.backup else None,
        copied_back=_copied_back(target, ops),
    )


_KINDS = {Kind.ADDED: "inserted", Kind.CHANGED: "updated", Kind.REMOVED: "deleted"}
"""What happens to a row from the newest version to the restored one -> what the restore does to it."""


def keys_of(spec: AnySpec) -> tuple[str, ...]:
    """Return the columns that identify a row of a table; none if its spec does not say so."""
    if isinstance(spec, SilverSpec):
        return (*spec.keys, _START_AT) if spec.keeps_history else spec.keys
    if isinstance(spec, SilverQuerySpec):
        return spec.keys
    return tuple(spec.group_by) if isinstance(spec, GoldSpec) else ()


def _partitions(difference: TableDifference) -> Iterator[dict[str, Any]]:
    for each in difference.partitions:
        changes = {"inserted": each.added, "updated": each.changed, "deleted": each.removed}
        yield {"partition": dict(each.partition), **changes}


def _changed(batch: Winner, ops: OpsTables) -> ChangedBatch:
    intent, rows = batch.intent, ops.ledger.closed_rows(batch)
    return ChangedBatch(
        batch.batch_seq,
        batch.version,
        intent.interval.option,
        intent.run_id,
        rows.applied if rows else None,
        intent.sources.files,
    )


def _copied_back(target: RestoreTarget, ops: OpsTables) -> MissingFiles | None:
    if target.backup is None:
        return None
    missing = target.backup.missing(target.folders(ops.paths))
    return MissingFiles(len(missing), sum(file.size for file, _ in missing))


def _secondary_changes(target: RestoreTarget, ops: OpsTables) -> Iterator[SecondaryChange]:
    folders = secondary_tables(target.spec.table, target.table_id, ops.paths)
    for name, version in target.secondary.items():
        folder = folders[name]
        now = table_rows(folder, latest_version(folder))
        yield SecondaryChange(name, now, table_rows(target.place_of(name, folder), version))


def _downstream(
    target: RestoreTarget, undone: Sequence[Winner], redone: Sequence[Winner], catalog: Catalog, ops: OpsTables
) -> Iterator[Downstream]:
    """Yield the tables that read the table, in the order of a run."""
    table, reached = target.spec.table, catalog.graph.downstream(target.spec.table)
    for name in (name for name in catalog.tables if name in reached and name != table):
        spec, rebuild = catalog.specs.get(name), ""
        if isinstance(spec, SilverSpec) and table in spec.source_tables:
            position = stream_position(spec, ops.paths, ops.ledger)
            consumed = position.last_sources.consumed_version(table, target.table_id) if position else None
            read = [batch for batch in undone if consumed is not None and batch.version <= consumed]
            rebuild = why_rebuild(spec, [*read, *redone])
        yield Downstream(name, rebuild)

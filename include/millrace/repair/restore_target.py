"""Whether a table can be restored to a version, and which version helps if it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from millrace.catalog import Catalog
from millrace.contracts.counted import counted
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec
from millrace.control.gates.result import GateResult
from millrace.control.gates.verification import wrong_rows_way_out
from millrace.control.ledger.resolution import resolve, table_id
from millrace.control.log.batch import Intent, Stream
from millrace.control.log.delta_log import commit_actions, commit_versions, latest_version
from millrace.control.log.property_commits import foreign_features
from millrace.control.log.stored_tables import identity, is_table, open_table
from millrace.control.log.streams import CONCURRENT_BY, NONE, concurrency_at, concurrency_of
from millrace.control.log.version_files import data_files_of
from millrace.control.log.whole_versions import missing_files
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.erased import last_erasure
from millrace.control.repair.restoring import batches_above, secondary_tables, secondary_target
from millrace.control.storage.stored_files import files_below
from millrace.errors import NotReadyError, RepairError, TornLogError
from millrace.paths import LakehousePaths
from millrace.reading.stored_version import StoredVersion
from millrace.repair.backups import Backup


@dataclass(frozen=True)
class RestoreTarget:
    """A version to which a table can be restored.

    Attributes:
        spec: the table's spec.
        table_id: the table's id.
        newest: its newest version, on top of which the rows come back.
        version: the version whose rows come back.
        certificate: the result by which readers could use that version.
        later: the batches after it, oldest first, also restores.
        secondary: name of the quarantine and of the tombstones -> the version to which they go back, if they change.
        backup: the backup that has what the table lost of the version; None without one.
    """

    spec: AnySpec
    table_id: str
    newest: int
    version: int
    certificate: GateResult
    later: tuple[Intent, ...]
    secondary: dict[str, int]
    backup: Backup | None = None

    def folders(self, paths: LakehousePaths) -> dict[str, LakePath]:
        """Return the table, and what is beside it, that go back to what the backup has: name -> folder."""
        beside = secondary_tables(self.spec.table, self.table_id, paths)
        folders = {self.spec.table: paths.table(self.spec.table), **{name: beside[name] for name in self.secondary}}
        return {name: folder for name, folder in folders.items() if self.backup and self.backup.has(name)}

    def place_of(self, name: str, folder: LakePath) -> LakePath:
        """Return where the version to which a table in a folder goes back can be read now."""
        return self.backup.place_of(name) if self.backup and self.backup.has(name) else folder


def require_repairable(spec: AnySpec, catalog: Catalog, ops: OpsTables) -> None:
    """Require that a table is there, has one stream, and is not being rebuilt.

    Raises:
        NotReadyError: there is no table.
        RepairError: it has `concurrent_by`, or is being rebuilt.
    """
    table, path = spec.table, ops.paths.table(spec.table)
    if not is_table(path):
        raise NotReadyError(f"{table}: there is no table to repair; its next run creates it")
    if concurrency_of(spec) != NONE or concurrency_at(path) != NONE:
        raise RepairError(
            f"{table}: a table with concurrent_by cannot be repaired",
            "Remove concurrent_by from its spec and run the table once. After the repair write the key again.",
        )
    for rebuild in ops.rebuilds.active(catalog.specs):
        if table in rebuild.tables:
            raise RepairError(
                f"{table}: a rebuild of {rebuild.table} is in progress",
                f"Finish it: lakehouse rebuild {rebuild.table}. Or give it up, with --cancel.",
            )


def restore_target(
    spec: AnySpec,
    version: int,
    catalog: Catalog,
    ops: OpsTables,
    *,
    no_reload: bool = False,
    backup: Backup | None = None,
) -> RestoreTarget:
    """Return the version as a target to which the table can be restored; a backup may have its files, and its log.

    Raises:
        NotReadyError: there is no table.
        RepairError: the table cannot be restored to it; the message names what would help.
        TornLogError: the log does not continue where the ledger ended.
    """
    require_repairable(spec, catalog, ops)
    table, path = spec.table, ops.paths.table(spec.table)
    if no_reload and not isinstance(spec, BronzeSpec):
        cause = f"{table}: only a bronze table can leave out what its undone batches had read"
        raise RepairError(cause, "Its next run reads its sources again: restore or correct these first.")
    newest = latest_version(path)
    if version == newest:
        raise RepairError(f"{table}: version {version} is the newest already", _hint(table))
    if backup:
        _require_of_table(backup, spec, newest, ops)
    if not 0 <= version < newest:
        raise RepairError(f"{table} has no version {version} to go back to: its newest is {newest}", _hint(table))
    opened = open_table(path, newest)
    target = open_table(backup.folder, version) if backup else _opened(table, path, version, ops)
    if identity(target) != identity(opened):
        cause = f"{table}: version {version} is from before a rebuild"
        raise RepairError(cause, f"Undo the rebuild first: lakehouse rebuild {table} --undo")
    position = resolve(path, Stream(table), ops.ledger)
    try:
        later = tuple(batches_above(path, version))
    except TornLogError as error:
        if backup is None:
            cause = f"{table}: the log lacks commits after version {version}"
            raise RepairError(cause, _nearest(table, path, version, ops)) from error
        batches = ops.ledger.batches(table, position.table_id, version, newest, with_undone=True)
        later = tuple(batch.intent for batch in batches)
    if backup:
        _require_taken_after(table, later)
    _require_nobody_erased(table, path, version, table, ops)
    if foreign := foreign_features(path):
        cause = f"{table}: the table has features with which no restore can write it: {', '.join(foreign)}"
        raise RepairError(cause, f"Rebuild it from its sources: lakehouse rebuild {table}")
    _require_same_protocol(table, path, target, opened, ops)
    _require_one_stream(table, target)
    if (sizes := data_files_of(target)).keys() == data_files_of(opened).keys():
        if backup:
            _require_undamaged(table, path, newest, sizes, backup)
        raise RepairError(f"{table}: version {newest} has the rows of version {version} already", _hint(table))
    if backup is None:
        _require_files(table, path, target, opened, ops)
    verdicts = ops.gates.verdicts(table)
    if verdicts and verdicts.found_wrong:
        cause = f"{table}: a verification found version {verdicts.found_wrong.version} wrong, and not since when"
        raise RepairError(cause, wrong_rows_way_out(table))
    certificate = _certificate(table, version, backup, ops)
    if certificate is None:
        cause = f"{table}: version {version} was never certified, so that readers would not get its rows"
        raise RepairError(cause, _nearest(table, path, version, ops))
    _, redone = ops.ledger.rewound(table, position.table_id, newest, version)
    if replays := [batch.batch_seq for batch in redone if batch.intent.sources.replay]:
        cause = f"{table}: batch {replays[0]} is a replay that was undone, and its rows wait in quarantine again"
        raise RepairError(cause, f"Restore an earlier version, then: lakehouse quarantine replay {table}")
    secondary = dict[str, int]()
    for name, folder in secondary_tables(table, position.table_id, ops.paths).items():
        before = secondary_target(folder, [intent.token for intent in later])
        if backup and (of_backup := backup.manifest.beside.get(name)) is not None:
            is_whole = len(commit_versions(folder, of_backup)) == latest_version(folder) - of_backup
            if before is not None or not is_whole:  # a commit that the log lost may be one of an undone batch
                secondary[name] = of_backup
        elif before is not None:
            _require_nobody_erased(name, folder, before, table, ops)
            _require_files(name, folder, _opened(name, folder, before, ops), open_table(folder), ops)
            secondary[name] = before
    return RestoreTarget(spec, position.table_id, newest, version, certificate, later, secondary, backup)


def _require_of_table(backup: Backup, spec: AnySpec, newest: int, ops: OpsTables) -> None:
    """Require that a backup is one of the table as it is now."""
    table, path, has = spec.table, ops.paths.table(spec.table), backup.manifest
    if has.table_id != (of_table := table_id(path)):
        cause = f"{table}: the backup is of the table {has.table_id}, before a rebuild; now it is {of_table}"
        undo = f"Undo the rebuild first, while its old versions are there: lakehouse rebuild {table} --undo"
        raise RepairError(cause, f"{undo}. Or read the backup itself: it is a Delta table.")
    if has.version > newest:
        cause = f"{table}: the backup has version {has.version}, and the table ends with version {newest}"
        raise RepairError(cause, "Its folder was put back to an older state. Use an earlier backup, or rebuild it.")
    backup.require_same_commit(path)


def _require_undamaged(table: str, path: LakePath, newest: int, sizes: Mapping[str, int], backup: Backup) -> None:
    stored = {file.path: file.size for file in files_below(path)}
    if lost := [name for name, size in sizes.items() if stored.get(name) != size]:
        files = counted(len(lost), "file that is", "files that are")
        cause = f"{table}: version {newest} needs {files} gone or damaged, such as {min(lost)}"
        raise RepairError(cause, f"Copy each by hand from {backup.folder}, where it has the same name.")


def _certificate(table: str, version: int, backup: Backup | None, ops: OpsTables) -> GateResult | None:
    if backup is None:
        return ops.gates.certificate_of(table, version)
    # The log that shows which later versions have the same rows may be gone; the backup was taken while it was there.
    known = next(ops.gates.certificates_below(table, version + 1), None)
    return known if known and known.version == backup.manifest.certificate.version else None


def _require_taken_after(table: str, later: Iterable[Intent]) -> None:
    """Require that nobody was erased since a backup, by the batches after it: the log may have lost their commits."""
    for erasure in (each.sources.deletes for each in later if each.sources.erases):
        cause = f"{table}: the backup is from before the {erasure}, and would bring back who was erased"
        raise RepairError(cause, "Use one that was taken later, and delete this one.")


def _require_nobody_erased(name: str, path: LakePath, version: int, table: str, ops: OpsTables) -> None:
    """Require that nobody was erased from a table, or one beside it, after a version, so that it brings nobody back."""
    if erased := last_erasure(path, version):
        cause = f"{name}: version {version} is from before the {erased.name}, and would bring back who was erased"
        since = sorted(_passed(table, ops, above=erased.version - 1)) if name == table else []
        later = next(_whole(path, since), None)
        raise RepairError(cause, f"The first that may be restored is version {later}." if later else _hint(table))


def _opened(table: str, path: LakePath, version: int, ops: OpsTables) -> DeltaTable:
    try:
        return open_table(path, version)
    except DeltaError as error:
        cause = f"{table}: Delta has removed the log of version {version}"
        raise RepairError(cause, _nearest(table, path, version, ops)) from error


def _require_same_protocol(table: str, path: LakePath, target: DeltaTable, newest: DeltaTable, ops: OpsTables) -> None:
    """Require that the table has had the same features since: what they wrote cannot be undone by files alone."""
    if _protocol(target) == _protocol(newest):
        return
    changes = (
        version
        for version in reversed(commit_versions(path, target.version()))
        if any("protocol" in action for action in commit_actions(path, version))
    )
    cause = f"{table}: the features of the table have changed since version {target.version()}"
    raise RepairError(cause, _nearest(table, path, next(changes, target.version()), ops))


def _require_one_stream(table: str, target: DeltaTable) -> None:
    """Require that the properties that come back with a version do not give the table streams of its sources."""
    if CONCURRENT_BY in target.metadata().configuration:
        cause = f"{table}: version {target.version()} is from before concurrent_by was removed"
        raise RepairError(cause, f"Restore a later version. {_hint(table)}")


def _protocol(table: DeltaTable) -> tuple[int, int, frozenset[str], frozenset[str]]:
    protocol = table.protocol()
    features = (frozenset(names or ()) for names in (protocol.reader_features, protocol.writer_features))
    return protocol.min_reader_version, protocol.min_writer_version, *features  # type: ignore[return-value]


def _require_files(table: str, path: LakePath, target: DeltaTable, newest: DeltaTable, ops: OpsTables) -> None:
    if missing := _missing(path, target, newest):
        gone = counted(len(missing), "file", "files")
        cause = f"{table}: VACUUM or somebody has deleted {gone} of version {target.version()}, such as {min(missing)}"
        way_out = _nearest(table, path, target.version(), ops) if "_" not in table.partition(".")[0] else ""
        raise RepairError(cause, *filter(None, [way_out]))


def _missing(path: LakePath, target: DeltaTable, newest: DeltaTable) -> set[str]:
    files, others = (StoredVersion(path, table.version()).files.keys() for table in (target, newest))
    return missing_files(path, sorted(files - others))


def _nearest(table: str, path: LakePath, version: int, ops: OpsTables) -> str:
    """Return the nearest versions to which the table can be restored, in a sentence."""
    below = next(_whole(path, sorted(_passed(table, ops, below=version), reverse=True)), None)
    above = next(_whole(path, sorted(_passed(table, ops, above=version))), None)
    nearest = [str(each) for each in (below, above) if each is not None]
    if not nearest:
        return f"No other version of the table is certified and whole. {_hint(table)}"
    return f"The nearest that is certified and whole is version {' or '.join(nearest)}."


def _passed(table: str, ops: OpsTables, *, above: int = -1, below: int | None = None) -> set[int]:
    of_table = table_id(ops.paths.table(table))
    results = ops.gates.results_between(table, of_table, above + 1, None if below is None else below - 1)
    return {recorded.result.version for recorded in results if recorded.result.passed}


def _whole(path: LakePath, versions: list[int]) -> Iterator[int]:
    newest = open_table(path)
    for version in versions:
        try:
            target = open_table(path, version)
        except DeltaError:
            continue
        is_older = version < newest.version() and _protocol(target) == _protocol(newest)
        if is_older and not _missing(path, target, newest):
            yield version


def _hint(table: str) -> str:
    return f"`lakehouse gate show {table}` lists the checked versions."

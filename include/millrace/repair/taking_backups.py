"""Take a backup of one certified version of a table; a later call goes on where one was interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from millrace.clock import utc_now
from millrace.contracts.lake_path import LakePath
from millrace.contracts.strict_model import StrictModel
from millrace.control.gates.result import GateResult
from millrace.control.log.batch import ONE_STREAM
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import identity, open_table
from millrace.control.log.version_files import data_files_of, log_files_of
from millrace.control.maintenance.holding import hold_tables, release_hold
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.restoring import batches_above, secondary_tables, secondary_target
from millrace.control.storage.copies import Digest, copy_file, digest_of
from millrace.control.storage.objects_on_s3 import object_store
from millrace.control.storage.stored_files import delete_files, files_below, is_file, read_bytes
from millrace.errors import RepairError
from millrace.paths import OWN, LakehousePaths
from millrace.reading.certified import certified, require_table
from millrace.reading.stored_version import StoredVersion
from millrace.repair.backups import MANIFEST, BackedUpFile, Backup, Manifest, backup_place, stored_manifest

_BEGUN = "backup.begun.json"


class _Begun(StrictModel):
    """The backup that somebody has begun in a folder."""

    table: str
    table_id: str
    version: int


def take_backup(
    table: str, folder: str, ops: OpsTables, *, version: int | None = None, taken_by: str, run_id: str
) -> Backup:
    """Copy a certified version of a table to a folder of its own; return the backup also if it is there already.

    A hold keeps the version meanwhile. It is released at the end, also of a failure.

    Args:
        table: the table; it needs no spec.
        folder: a folder, or a place in a bucket, outside of the lakehouse; a new one, or one of this backup.
        ops: the lakehouse.
        version: the version; None for the certified one, or for that of the backup that was interrupted there.
        taken_by: who takes it.
        run_id: the run that takes it.

    Raises:
        UnknownNameError: there is no such table.
        NotReadyError: no version is certified, or the version cannot be read any more.
        MisfitError: the files alone do not have the rows, as with deletion vectors.
        RepairError: the folder is in use, the version was never certified, or a file of it is damaged.
        LeaseLostError: a writer held the lease of the table for too long.
        StorageError: a store refuses a request, or damages a copy.
    """
    require_table(table, ops.paths)
    place = backup_place(folder)
    _require_apart(place, ops.paths)

    def release(of_version: int) -> None:
        name = _hold(of_version, place)
        release_hold(name, said_by=taken_by, why="the backup has ended", run_id=run_id, ops=ops)

    if (manifest := stored_manifest(place)) is not None:
        release(manifest.version)  # also if this backup is refused: nothing else would release it
        _begin(table, place, version, ops)
        _end(place)
        return Backup(place, manifest)
    begun = _begin(table, place, version, ops)
    try:
        hold = _hold(begun.version, place)
        hold_tables(hold, [table], said_by=taken_by, why="a backup copies it", run_id=run_id, ops=ops)
        return _take(begun, place, ops, taken_by, run_id)
    finally:
        release(begun.version)


def _hold(version: int, place: LakePath) -> str:
    return f"backup of version {version} in {place}"


def _require_apart(place: LakePath, paths: LakehousePaths) -> None:
    def resolved(path: LakePath) -> LakePath:
        return path.resolve() if isinstance(path, Path) else path

    backup, root = resolved(place), resolved(paths.root)
    if backup.is_relative_to(root) or root.is_relative_to(backup):
        cause = f"{place} is not apart from the lakehouse {paths.root}"
        raise RepairError(cause, "Name a folder elsewhere: what destroys the one must not destroy the other.")


def _begin(table: str, place: LakePath, version: int | None, ops: OpsTables) -> _Begun:
    """Return what is backed up in the folder: what was begun there, or is there, or begins now."""
    table_id = identity(open_table(ops.paths.table(table), without_files=True))
    known, started = stored_manifest(place), place / OWN / _BEGUN
    if known is not None:
        begun = _Begun(table=known.table, table_id=known.table_id, version=known.version)
        if version is None:
            newest = certified(table, ops.paths.root).version
            # The holds of backups are commits of their own, which change no row.
            is_same = _require_certificate(table, newest, ops).version == known.certificate.version
            version = known.version if is_same else newest
    elif is_file(started):
        try:
            begun = _Begun.model_validate_json(read_bytes(started))
        except ValidationError as error:
            cause = f"{started} does not say which backup was begun there: {error.errors()[0]['msg']}"
            raise RepairError(cause, "Name another folder, or delete this one.") from error
        version = begun.version if version is None else version
    else:
        if (other := next(files_below(place), None)) is not None:
            raise RepairError(f"{place} has files of something else, such as {other.path}", "Name an empty folder.")
        version = certified(table, ops.paths.root).version if version is None else version
        _require_certificate(table, version, ops)
        begun = _Begun(table=table, table_id=table_id, version=version)
        object_store(place / OWN).put_if_absent(_BEGUN, begun.model_dump_json().encode())
    if begun != _Begun(table=table, table_id=table_id, version=version):
        has = f"{begun.table} version {begun.version} (table {begun.table_id})"
        cause = f"{place} has a backup of {has}, not of version {version} of {table} (table {table_id})"
        raise RepairError(cause, "Each backup has a folder of its own: name another one.")
    return begun


def _take(begun: _Begun, place: LakePath, ops: OpsTables, taken_by: str, run_id: str) -> Backup:
    table, version = begun.table, begun.version
    path = ops.paths.table(table)
    beside = _versions_beside(begun, ops)
    certificate = _require_certificate(table, version, ops)
    folders = secondary_tables(table, begun.table_id, ops.paths)
    files = list(_copied(StoredVersion(path, version), place, "", certificate.version))
    for name, of_table in beside.items():
        files += _copied(StoredVersion(folders[name], of_table), place, f"{OWN}/{name}/", of_table)
    last = ops.ledger.last_recorded(table, begun.table_id, ONE_STREAM, version)
    manifest = Manifest(
        table=table,
        table_id=begun.table_id,
        version=version,
        certificate=certificate,
        spec_hash=last.intent.spec_hash if last else "",
        rows=StoredVersion(place, version).count_rows(),
        size=sum(file.size for file in files),
        beside=beside,
        files=tuple(files),
        taken_at=utc_now(),
        taken_by=taken_by,
        run_id=run_id,
    )
    folder, _, name = MANIFEST.partition("/")
    object_store(place / folder).put_if_absent(name, manifest.model_dump_json(indent=1).encode())
    _end(place)
    return Backup(place, manifest)


def _end(place: LakePath) -> None:
    delete_files(place / OWN, [_BEGUN])


def _require_certificate(table: str, version: int, ops: OpsTables) -> GateResult:
    if (certificate := ops.gates.certificate_of(table, version)) is None:
        cause = f"{table}: version {version} is not certified"
        raise RepairError(cause, f"`lakehouse gate show {table}` lists the checked versions.")
    return certificate


def _versions_beside(begun: _Begun, ops: OpsTables) -> dict[str, int]:
    """Return name of the quarantine and of the tombstones -> its version without rows of batches after the backup's.

    A batch writes there after its commit. So its commit is known if these newest versions, read first, have its rows.
    """
    folders = secondary_tables(begun.table, begun.table_id, ops.paths)
    newest = {name: latest_version(folder) for name, folder in folders.items()}
    later = [intent.token for intent in batches_above(ops.paths.table(begun.table), begun.version)]
    before = {name: secondary_target(folder, later) for name, folder in folders.items()}
    versions = {name: at if (target := before[name]) is None else min(at, target) for name, at in newest.items()}
    return {name: at for name, at in versions.items() if at >= 0}


def _copied(stored: StoredVersion, place: LakePath, prefix: str, since: int) -> Iterator[BackedUpFile]:
    """Copy the files of a version, those of its log last, and yield them; files that are there already are compared."""
    sizes = _data_files(stored)
    try:
        log = log_files_of(stored.path, stored.version, since)
    except FileNotFoundError as error:
        cause = f"{stored.path}: version {stored.version} cannot be copied: its log has no {Path(str(error)).name}"
        raise RepairError(cause, "Restore the file from a backup of the log, or back up a later version.") from error
    target = place / prefix if prefix else place
    known = {file.path for file in files_below(target)}
    for name in (*sizes, *log):
        source = stored.path / name
        digest = _same(source, target / name) if name in known else None
        digest = digest or copy_file(source, target / name)
        if digest.size != sizes.get(name, digest.size):
            cause = f"{source} is damaged: it has {digest.size:,} bytes, and {sizes[name]:,} by the log"
            raise RepairError(cause, "Restore a version that does not have it, or rebuild the table from its sources.")
        yield BackedUpFile(path=f"{prefix}{name}", size=digest.size, sha256=digest.sha256)
    copy = StoredVersion(target, latest_version(target))
    if (copy.version, copy.files.keys()) != (stored.version, stored.files.keys()):
        cause = f"{target}: the copy reads as version {copy.version} with other files than version {stored.version}"
        raise RepairError(cause, "Somebody else writes there: take the backup in another folder.")


def _data_files(stored: StoredVersion) -> Mapping[str, int]:
    """Return the data files of a version with their bytes.

    Raises:
        MisfitError: the files alone do not have the rows.
        NotReadyError: a file is gone; the message names the nearest version that is whole.
        RepairError: a file is outside of the table's folder, as those of a shallow clone.
    """
    sizes = data_files_of(stored.delta)
    if outside := [name for name in sizes if name.startswith("/") or "://" in name]:
        cause = f"{stored.path} is a shallow clone: it has files of another table, such as {min(outside)}"
        raise RepairError(cause, "Make it a table of its own first: CREATE TABLE ... DEEP CLONE, or rebuild it.")
    stored.dataset_of_files(stored.files.keys())
    return sizes


def _same(source: LakePath, copy: LakePath) -> Digest | None:
    digest = digest_of(copy)
    return digest if digest == digest_of(source) else None

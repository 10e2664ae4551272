"""Backups of a table: deep copies of one certified version, each a Delta table of its own with that one version.

A backup has the data files of the version and the part of the log from which it is read, under their own names; so any
Delta reader opens it, and `lakehouse repair restore --from` copies back just what is missing. The quarantine and the
tombstones of that time are below `_millrace`, where no reader looks. The manifest is written last: without it there is
no backup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from millrace.contracts.counted import counted
from millrace.contracts.interval import Instant
from millrace.contracts.lake_path import LakePath, lake_path
from millrace.contracts.strict_model import StrictModel
from millrace.control.gates.result import GateResult
from millrace.control.log.version_files import LOG
from millrace.control.storage.copies import copy_file, digest_of
from millrace.control.storage.stored_files import files_below, is_file, read_bytes
from millrace.errors import RepairError
from millrace.paths import OWN

MANIFEST = f"{OWN}/backup.json"


class BackedUpFile(StrictModel):
    """A file of a backup.

    Attributes:
        path: its path relative to the backup.
        size: bytes.
        sha256: the SHA-256 of its content.
    """

    path: str
    size: int
    sha256: str


class Manifest(StrictModel):
    """What a backup has.

    Attributes:
        table: the table.
        table_id: its id.
        version: the version; the backup is a Delta table of just this version.
        certificate: the result by which readers may use it.
        spec_hash: the digest of the spec by which its newest batch was made; empty if the ledger knows of none.
        rows: the number of its rows.
        size: the bytes of all files.
        beside: name of the quarantine and of the tombstones -> the version that belongs to it.
        files: all files.
        taken_at: when the backup was complete.
        taken_by: who took it.
        run_id: the run that took it.
    """

    table: str
    table_id: str
    version: int
    certificate: GateResult
    spec_hash: str
    rows: int
    size: int
    beside: dict[str, int]
    files: tuple[BackedUpFile, ...]
    taken_at: Instant
    taken_by: str
    run_id: str


@dataclass(frozen=True)
class MissingFiles:
    """Files of a backup that its table does not have any more.

    Attributes:
        files: their number.
        size: their bytes.
    """

    files: int
    size: int


@dataclass(frozen=True)
class Backup:
    """A complete backup.

    Attributes:
        folder: where it is.
        manifest: what it has.
    """

    folder: LakePath
    manifest: Manifest

    def has(self, name: str) -> bool:
        """Return whether the backup has a table: its own, or the quarantine or the tombstones by their names."""
        return name in (self.manifest.table, *self.manifest.beside)

    def place_of(self, name: str) -> LakePath:
        """Return where the backup has a table of `has`."""
        return self.folder if name == self.manifest.table else self.folder / OWN / name

    def require_whole(self) -> None:
        """Require that all files are there with their sizes.

        Raises:
            RepairError: one is not.
        """
        stored = {file.path: file.size for file in files_below(self.folder)}
        damaged = [file.path for file in self.manifest.files if stored.get(file.path) != file.size]
        if damaged:
            files = counted(len(damaged), "file is", "files are")
            cause = f"{self.folder}: {files} missing or of another size, such as {min(damaged)}"
            raise RepairError(cause, "Nothing was changed. Use another backup, or rebuild the table from its sources.")

    def require_same_commit(self, path: LakePath) -> None:
        """Require that the version is the one of the table, as far as the table still has its commit.

        Raises:
            RepairError: it is not: the table was put back to an older state since, and has gone on from there.
        """
        name = f"{LOG}/{self.manifest.version:020d}.json"
        backed_up = next(file for file in self.manifest.files if file.path == name)
        if is_file(path / name) and digest_of(path / name).sha256 != backed_up.sha256:
            cause = f"{self.manifest.table}: version {self.manifest.version} is another one than that of {self.folder}"
            raise RepairError(cause, "The table was replaced, or put back, after the backup: use a later backup.")

    def missing(self, folders: Mapping[str, LakePath]) -> list[tuple[BackedUpFile, LakePath]]:
        """Return the files that tables do not have any more, each with its place there, the log of a table last.

        Args:
            folders: table, or what is beside it by its name -> its folder.
        """
        stored = {name: {file.path for file in files_below(folder)} for name, folder in folders.items()}
        return [
            (file, folders[name] / path)
            for file in self.manifest.files
            for name, path in [self._place(file.path)]
            if name in folders and path not in stored[name]
        ]

    def copy_back(self, folders: Mapping[str, LakePath]) -> None:
        """Copy the missing files back, and verify each.

        Raises:
            RepairError: the backup has other bytes than it had.
            StorageError: the copy has.
        """
        for file, target in self.missing(folders):
            if digest_of(self.folder / file.path).sha256 != file.sha256:
                cause = f"{self.folder / file.path} has other bytes than when the backup was taken"
                raise RepairError(cause, "The version was not restored. Use another backup, or rebuild the table.")
            copy_file(self.folder / file.path, target)

    def _place(self, path: str) -> tuple[str, str]:
        """Return to which table a file belongs, with its path relative to that."""
        if not path.startswith(f"{OWN}/"):
            return self.manifest.table, path
        _, name, rest = path.split("/", 2)
        return name, rest


def backup_place(folder: str) -> LakePath:
    """Return the place of a backup.

    Raises:
        RepairError: it is neither a folder nor a place in a bucket.
    """
    if folder.partition("/")[0].endswith(":") and "://" not in folder:
        raise RepairError(f"{folder} is no place in a bucket", "Write it as s3://bucket/prefix.")
    try:
        place = lake_path(folder)
    except ValueError as error:
        raise RepairError(str(error)) from error
    if isinstance(place, Path) and place.is_file():
        raise RepairError(f"{place} is a file", "A backup is a folder: name one.")
    return place.absolute() if isinstance(place, Path) else place


def stored_manifest(folder: LakePath) -> Manifest | None:
    """Return the manifest of a backup; None if there is none.

    Raises:
        RepairError: it cannot be read.
    """
    if not is_file(folder / MANIFEST):
        return None
    try:
        return Manifest.model_validate_json(read_bytes(folder / MANIFEST))
    except ValidationError as error:
        cause = f"{folder / MANIFEST} is no manifest of a backup: {error.errors()[0]['msg']}"
        raise RepairError(cause, "Use another backup.") from error


def open_backup(table: str, folder: str) -> Backup:
    """Return the complete backup of a table in a folder.

    Raises:
        RepairError: there is none, or it is one of another table, or files of it are missing.
    """
    place = backup_place(folder)
    manifest = stored_manifest(place)
    if manifest is None:
        cause = f"{place} has no backup: there is no {MANIFEST}, which is written last"
        raise RepairError(cause, f"Name its folder. One that was interrupted: lakehouse repair backup {table} --to ...")
    if manifest.table != table:
        raise RepairError(f"{place} has a backup of {manifest.table}, not of {table}", "Name the folder of another.")
    backup = Backup(place, manifest)
    backup.require_whole()
    return backup

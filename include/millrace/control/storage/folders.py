"""Move and delete whole folders of a lakehouse, on a disk or in a bucket; a second call goes on where one stopped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from millrace.contracts.lake_path import LakePath, S3Path
from millrace.control.storage.objects import force_to_disk
from millrace.control.storage.read_cache import clear_read_cache
from millrace.control.storage.s3_access import s3_client, translate_storage_errors
from millrace.control.storage.stored_files import delete_files, files_below

_LOG = "_delta_log/"
_CHECKSUM = ".crc"


def move_folder(source: LakePath, target: LakePath) -> None:
    """Move a folder to a place where nothing is: on a disk in one step, in a bucket file by file.

    Of a Delta table the log comes last, from its newest file, and goes first, from its oldest: meanwhile readers get an
    error, never an older version. Nothing happens without a source.

    Raises:
        OSError: the target is another, or is not on the same disk.
        StorageError: the store refuses a request.
    """
    if isinstance(source, Path) and isinstance(target, Path):
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            force_to_disk(target.parent)
            force_to_disk(source.parent)
    elif isinstance(source, S3Path) and isinstance(target, S3Path):
        log, others = _parts(file.path for file in files_below(source))
        with translate_storage_errors(str(target)):
            for name in (*others, *reversed(log)):
                place = {"Bucket": source.bucket, "Key": (source / name).key}
                s3_client().copy(place, target.bucket, (target / name).key)
        delete_files(source, [*log, *others])
        clear_read_cache()


def delete_folder(folder: LakePath) -> None:
    """Delete a folder with all files below it, the log of a Delta table first."""
    log, others = _parts(file.path for file in files_below(folder))
    delete_files(folder, [*log, *others])
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=True)  # the empty folders


def delete_remains(table: LakePath) -> None:
    """Delete what deleted data files leave in the folder of a table on a disk; nobody may write it meanwhile.

    These are Hadoop's checksums of them, and empty folders, whose names may be values of a partition.
    """
    if not isinstance(table, Path):
        return
    for folder, _, names in os.walk(table, topdown=False):
        place, stored = Path(folder), set(names)
        if place == table or place.is_relative_to(table / _LOG):
            continue
        for name in names:
            if name.startswith(".") and name.endswith(_CHECKSUM) and name[1:].removesuffix(_CHECKSUM) not in stored:
                (place / name).unlink(missing_ok=True)
        if not any(place.iterdir()):
            place.rmdir()


def _parts(names: Iterable[str]) -> tuple[list[str], list[str]]:
    every = sorted(names)
    return [name for name in every if name.startswith(_LOG)], [name for name in every if not name.startswith(_LOG)]

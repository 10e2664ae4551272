"""Single files under a lakehouse's root, on a disk and in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from include.contracts.lake_path import LakePath, S3Path
from include.control.storage.s3_access import s3_client, said_plainly


def read_text(file: LakePath) -> str:
    """The file's text.

    Raises:
        FileNotFoundError: there is no such file.
        NotReadyError: the store does not answer.
        StorageError: it refuses.
    """
    return read_bytes(file).decode()


def read_bytes(file: LakePath) -> bytes:
    """The file's content; raises as `read_text`."""
    if isinstance(file, Path):
        return file.read_bytes()
    with said_plainly(str(file)):
        return bytes(s3_client().get_object(Bucket=file.bucket, Key=file.key)["Body"].read())


def is_file(file: LakePath) -> bool:
    """Whether there is such a file."""
    if isinstance(file, Path):
        return file.is_file()
    try:
        with said_plainly(str(file)):
            s3_client().head_object(Bucket=file.bucket, Key=file.key)
    except FileNotFoundError:
        return False
    return True


def names_in(folder: LakePath, prefix: str = "", after: str = "") -> Iterator[str]:
    """The names of the files in a folder, in any order; none where there is no such folder.

    Args:
        folder: the folder.
        prefix: only names that begin so.
        after: only names that are greater; a bucket lists a thousand names a request.
    """
    if isinstance(folder, Path):
        names = (entry.name for entry in folder.iterdir()) if folder.is_dir() else iter(())
        return (name for name in names if name.startswith(prefix) and name > after)
    return _keys_in(folder, prefix, after)


def _keys_in(folder: S3Path, prefix: str, after: str) -> Iterator[str]:
    beginning = f"{folder.key}/"
    asked = {"Prefix": beginning + prefix, "StartAfter": beginning + after, "Delimiter": "/"}
    with said_plainly(str(folder)):
        for page in s3_client().get_paginator("list_objects_v2").paginate(Bucket=folder.bucket, **asked):
            yield from (one["Key"].removeprefix(beginning) for one in page.get("Contents", ()))

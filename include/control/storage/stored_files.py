"""Single files under a lakehouse's root, on a disk and in a bucket."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from include.contracts.lake_path import LakePath, S3Path
from include.control.storage.content_cache import ContentCache
from include.control.storage.read_cache import cached_etag, cached_names, clear_read_cache, note_put
from include.control.storage.s3_access import s3_client, translate_storage_errors

_DELETED_AT_ONCE = 1000
"""As many as a store takes in one request."""

_kept = ContentCache(8 * 1024**2)
"""Mostly commits, which jobs read again and again. The listing of their folder shows whether they are unchanged."""


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
    etag = cached_etag(file)
    if etag and (known := _kept.get(file, etag)) is not None:
        return known
    with translate_storage_errors(str(file)):
        found = s3_client().get_object(Bucket=file.bucket, Key=file.key)
        content = bytes(found["Body"].read())
    _kept.keep(file, content, found["ETag"])
    return content


def cache_content(file: S3Path, content: bytes, etag: str) -> None:
    """Keep what this process has just put, so that nobody here reads it again."""
    _kept.keep(file, content, etag)


def is_file(file: LakePath) -> bool:
    """Whether there is such a file."""
    if isinstance(file, Path):
        return file.is_file()
    if cached_etag(file):
        return True
    try:
        with translate_storage_errors(str(file)):
            s3_client().head_object(Bucket=file.bucket, Key=file.key)
    except FileNotFoundError:
        return False
    return True


@dataclass(frozen=True, order=True)
class ListedFile:
    """A file as its folder lists it.

    Attributes:
        name: its name.
        modified: when it was written, in seconds by the clock of the storage; only differences mean anything.
    """

    name: str
    modified: float


def replace_file(file: LakePath, body: bytes) -> None:
    """Write a file as one step, whatever is there; raises as `read_text`."""
    if isinstance(file, Path):
        partial = file.with_name(f".{file.name}.{uuid4().hex}")
        partial.write_bytes(body)
        os.replace(partial, file)
        return
    with translate_storage_errors(str(file)):
        put = s3_client().put_object(Bucket=file.bucket, Key=file.key, Body=body)
    note_put(file, put["ETag"])


def delete_files(folder: LakePath, names: Sequence[str]) -> None:
    """Delete files of a folder, in this order; those that are gone already are no harm.

    Args:
        folder: the folder.
        names: their names, below it.
    """
    if isinstance(folder, Path):
        for name in names:
            (folder / name).unlink(missing_ok=True)
        return
    with translate_storage_errors(str(folder)):
        for begin in range(0, len(names), _DELETED_AT_ONCE):
            keys = [{"Key": (folder / name).key} for name in names[begin : begin + _DELETED_AT_ONCE]]
            s3_client().delete_objects(Bucket=folder.bucket, Delete={"Objects": keys, "Quiet": True})
    clear_read_cache()


def files_in(folder: LakePath) -> list[ListedFile]:
    """The files in a folder, by name; none where there is no such folder."""
    if isinstance(folder, S3Path):
        listed = ((name, one["LastModified"].timestamp()) for name, one in objects_in(folder))
    elif folder.is_dir():
        listed = ((entry.name, entry.stat().st_mtime) for entry in os.scandir(folder))
    else:
        return []
    return sorted(ListedFile(name, modified) for name, modified in listed)


def names_in(folder: LakePath, after: str = "") -> Iterator[str]:
    """The names of the files in a folder, in any order; none where there is no such folder.

    Args:
        folder: the folder; one in a bucket is looked at as `looks` says.
        after: only names that are greater; a bucket lists a thousand names a request.
    """
    if isinstance(folder, Path):
        names = (entry.name for entry in folder.iterdir()) if folder.is_dir() else iter(())
        return (name for name in names if name > after)

    def look() -> dict[str, str]:
        return {name: one["ETag"] for name, one in objects_in(folder, after=after)}

    return iter(cached_names(folder, after, look))


def objects_in(folder: S3Path, prefix: str = "", after: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and what the store says of it now, of each object in a folder, in the order of the names."""
    beginning = f"{folder.key}/"
    asked = {"Prefix": beginning + prefix, "StartAfter": beginning + after, "Delimiter": "/"}
    with translate_storage_errors(str(folder)):
        for page in s3_client().get_paginator("list_objects_v2").paginate(Bucket=folder.bucket, **asked):
            yield from ((one["Key"].removeprefix(beginning), one) for one in page.get("Contents", ()))

"""Read, write and list single files of a lakehouse, in a folder or in a bucket."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from millrace.contracts.lake_path import LakePath, S3Path
from millrace.control.storage.content_cache import cache_content, cached_content
from millrace.control.storage.read_cache import cached_etag, cached_names, clear_read_cache, note_put
from millrace.control.storage.s3_access import s3_client, translate_storage_errors

_MAX_DELETES = 1000
"""The most objects that a store deletes in one request."""


def read_text(file: LakePath) -> str:
    """Return the text of a file.

    Raises:
        FileNotFoundError: there is no such file.
        NotReadyError: the store does not answer.
        StorageError: the store refuses the request.
    """
    return read_bytes(file).decode()


def read_bytes(file: LakePath) -> bytes:
    """Return the content of a file; raise the errors of `read_text`."""
    if isinstance(file, Path):
        return file.read_bytes()
    # Mostly commits, which jobs read repeatedly. The listing of their folder shows whether they are unchanged.
    etag = cached_etag(file)
    if etag and (cached := cached_content(file, etag)) is not None:
        return cached
    with translate_storage_errors(str(file)):
        answer = s3_client().get_object(Bucket=file.bucket, Key=file.key)
        content = bytes(answer["Body"].read())
    cache_content(file, content, answer["ETag"])
    return content


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
    """A file in the listing of its folder.

    Attributes:
        name: its name.
        modified: when it was written, in seconds by the clock of the storage; only differences have a meaning.
    """

    name: str
    modified: float


def replace_file(file: LakePath, body: bytes) -> None:
    """Write or replace a file in one step; raise the errors of `read_text`."""
    if isinstance(file, Path):
        partial = file.with_name(f".{file.name}.{uuid4().hex}")
        partial.write_bytes(body)
        os.replace(partial, file)
        return
    with translate_storage_errors(str(file)):
        answer = s3_client().put_object(Bucket=file.bucket, Key=file.key, Body=body)
    note_put(file, answer["ETag"])


def delete_files(folder: LakePath, names: Sequence[str]) -> None:
    """Delete files by their names relative to a folder, in this order; files that do not exist are ignored."""
    if isinstance(folder, Path):
        for name in names:
            (folder / name).unlink(missing_ok=True)
        return
    with translate_storage_errors(str(folder)):
        for begin in range(0, len(names), _MAX_DELETES):
            keys = [{"Key": (folder / name).key} for name in names[begin : begin + _MAX_DELETES]]
            s3_client().delete_objects(Bucket=folder.bucket, Delete={"Objects": keys, "Quiet": True})
    if names:
        clear_read_cache()


def files_in(folder: LakePath) -> list[ListedFile]:
    """Return the files in a folder, sorted by name; none if there is no folder."""
    if isinstance(folder, S3Path):
        return sorted(ListedFile(name, item["LastModified"].timestamp()) for name, item in objects_in(folder))
    entries = os.scandir(folder) if folder.is_dir() else ()
    return sorted(ListedFile(entry.name, entry.stat().st_mtime) for entry in entries)


@dataclass(frozen=True)
class StoredFile:
    """A file somewhere below a folder.

    Attributes:
        path: its path relative to the folder.
        size: bytes.
        modified: when it was written, in seconds by the clock of the storage.
    """

    path: str
    size: int
    modified: float


def files_below(folder: LakePath) -> Iterator[StoredFile]:
    """Yield the files in a folder and in the folders below it, in any order; none if there is no folder."""
    if isinstance(folder, S3Path):
        root = f"{folder.key}/"
        with translate_storage_errors(str(folder)):
            for page in s3_client().get_paginator("list_objects_v2").paginate(Bucket=folder.bucket, Prefix=root):
                for item in page.get("Contents", ()):
                    if item["Key"].endswith("/"):  # the mark of an empty folder, as S3A leaves it
                        continue
                    yield StoredFile(item["Key"].removeprefix(root), item["Size"], item["LastModified"].timestamp())
        return
    root = os.path.join(folder, "")
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a temporary file of a writer, or one that VACUUM just deletes
                stat = os.stat(path := os.path.join(parent, name))
                yield StoredFile(path.removeprefix(root), stat.st_size, stat.st_mtime)


def empty_folders(folder: LakePath) -> Iterator[str]:
    """Yield the paths of the folders below a folder on a disk in which there is nothing; a bucket has none."""
    if isinstance(folder, Path):
        empty = (parent for parent, folders, names in os.walk(folder) if not folders and not names)
        yield from (parent.removeprefix(os.path.join(folder, "")) for parent in empty)


def names_in(folder: LakePath, after: str = "") -> Iterator[str]:
    """Return the names of the files in a folder, in any order; none if there is no folder.

    Args:
        folder: the folder; the listing of a bucket may come from the read cache.
        after: only names that are greater; a bucket lists a thousand names per request.
    """
    if isinstance(folder, Path):
        # A path for each of thousands of names would take most of the time of a listing.
        return (name for name in os.listdir(folder) if name > after) if folder.is_dir() else iter(())

    def read() -> dict[str, str]:
        return {name: item["ETag"] for name, item in objects_in(folder, after=after)}

    return iter(cached_names(folder, after, read))


def folders_in(folder: LakePath) -> list[str]:
    """Return the names of the folders in a folder; none if there is no folder."""
    if isinstance(folder, Path):
        return [entry.name for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
    root = f"{folder.key}/"
    with translate_storage_errors(str(folder)):
        pages = s3_client().get_paginator("list_objects_v2").paginate(Bucket=folder.bucket, Prefix=root, Delimiter="/")
        prefixes = [item["Prefix"] for page in pages for item in page.get("CommonPrefixes", ())]
    return [prefix.removeprefix(root).rstrip("/") for prefix in prefixes]


def objects_in(folder: S3Path, prefix: str = "", after: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each object in a folder, in order, with its item in the listing of the store."""
    root = f"{folder.key}/"
    arguments = {"Prefix": root + prefix, "StartAfter": root + after, "Delimiter": "/"}
    with translate_storage_errors(str(folder)):
        for page in s3_client().get_paginator("list_objects_v2").paginate(Bucket=folder.bucket, **arguments):
            yield from ((item["Key"].removeprefix(root), item) for item in page.get("Contents", ()))

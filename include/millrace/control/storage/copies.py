"""Copy single files between folders and buckets, each verified by its SHA-256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from millrace.contracts.lake_path import LakePath
from millrace.control.storage.objects import force_to_disk
from millrace.control.storage.read_cache import clear_read_cache
from millrace.control.storage.s3_access import s3_client, translate_storage_errors
from millrace.errors import StorageError

_STEP = 1024**2


@dataclass(frozen=True)
class Digest:
    """What a file has: its bytes, and the SHA-256 of them."""

    size: int
    sha256: str


def digest_of(file: LakePath) -> Digest:
    """Return the digest of a file, which is read in steps.

    Raises:
        FileNotFoundError: there is no such file.
        NotReadyError: the store does not answer.
        StorageError: the store refuses the request.
    """
    with _opened(file) as content:
        reader = _HashingReader(content)
        while reader.read(_STEP):
            pass
    return reader.digest


def copy_file(source: LakePath, target: LakePath) -> Digest:
    """Copy a file, read the copy again, and return its digest; a file that is there already is replaced in one step.

    Raises:
        FileNotFoundError: there is no such file.
        NotReadyError: a store does not answer.
        StorageError: a store refuses a request, or the copy has other bytes.
    """
    with _opened(source) as content:
        reader = _HashingReader(content)
        _write(target, reader)
    if (copied := digest_of(target)) != reader.digest:
        cause = f"{target}: the copy of {source} has other bytes ({copied.size:,} of {reader.digest.size:,})"
        raise StorageError(cause, "The storage damages what it stores, or somebody else writes there. Check it first.")
    return copied


@dataclass
class _HashingReader:
    """A file whose bytes are counted and hashed while somebody reads it."""

    content: IO[bytes]
    size: int = 0
    _hash: Any = field(default_factory=hashlib.sha256)

    def read(self, amount: int = -1) -> bytes:
        part = self.content.read(amount)
        self.size += len(part)
        self._hash.update(part)
        return part

    @property
    def digest(self) -> Digest:
        return Digest(self.size, self._hash.hexdigest())


@contextmanager
def _opened(file: LakePath) -> Iterator[IO[bytes]]:
    if isinstance(file, Path):
        with file.open("rb") as content:
            yield content
        return
    with translate_storage_errors(str(file)):
        body = s3_client().get_object(Bucket=file.bucket, Key=file.key)["Body"]
    try:
        yield body
    finally:
        body.close()


def _write(target: LakePath, content: _HashingReader) -> None:
    if not isinstance(target, Path):
        with translate_storage_errors(str(target)):
            s3_client().upload_fileobj(content, target.bucket, target.key)
        clear_read_cache()
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        with partial.open("wb") as file:
            while part := content.read(_STEP):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
        force_to_disk(target.parent)
    finally:
        partial.unlink(missing_ok=True)

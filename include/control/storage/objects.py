"""Small objects with conditional puts: what leases are kept in.

The interface is that of S3 (`If-None-Match`, `If-Match`), so that an object store can take the local folder's place.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from filelock import FileLock


@dataclass(frozen=True)
class StoredObject:
    """An object as it was read.

    Attributes:
        body: its content.
        etag: what a conditional put compares.
        age_s: for how many seconds it is known to have been as it is; never too long, whatever clocks say.
    """

    body: bytes
    etag: str
    age_s: float


class ObjectStore(Protocol):
    """Named objects that can be replaced only by who saw them last."""

    def get(self, key: str) -> StoredObject | None:
        """The object, or None when there is none."""

    def put_if_absent(self, key: str, body: bytes) -> str:
        """Create the object; its etag, empty when it exists."""

    def put_if_match(self, key: str, body: bytes, etag: str) -> str:
        """Replace the object that has `etag`; its new one, empty when it is another object by now, or gone."""

    def delete_if_match(self, key: str, etag: str) -> bool:
        """Remove the object that has `etag`; False when it is another one by now, or gone."""

    def keys(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted."""


class LocalObjectStore:
    """Objects as files of one folder; a lock file makes compare and replace one step.

    A shared folder has no clock that everybody can trust: some file systems stamp a file by the writer's clock. So the
    age of an object is for how long this process has seen it unchanged, by a clock that never jumps.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._first_seen: dict[str, tuple[str, float]] = {}

    def get(self, key: str) -> StoredObject | None:
        """The object, or None when there is none."""
        try:
            body = (self._folder / key).read_bytes()
        except FileNotFoundError:
            self._first_seen.pop(key, None)
            return None
        etag, now = _etag(body), time.monotonic()
        cached_etag, since = self._first_seen.get(key, ("", now))
        if cached_etag != etag:
            since = now
            self._first_seen[key] = (etag, since)
        return StoredObject(body, etag, now - since)

    def put_if_absent(self, key: str, body: bytes) -> str:
        """Create the object by an atomic hard link; its etag, empty when it exists."""
        partial = self._write_partial(key, body)
        try:
            os.link(partial, self._folder / key)
        except FileExistsError:
            return ""
        finally:
            partial.unlink()
        _force_to_disk(self._folder)
        return _etag(body)

    def put_if_match(self, key: str, body: bytes, etag: str) -> str:
        """Replace the object that has `etag`; its new one, empty when it is another object by now, or gone."""
        with self._locked():
            if not self._has(key, etag):
                return ""
            self._write_partial(key, body).replace(self._folder / key)
            _force_to_disk(self._folder)
            return _etag(body)

    def delete_if_match(self, key: str, etag: str) -> bool:
        """Remove the object that has `etag`; False when it is another one by now, or gone."""
        with self._locked():
            if not self._has(key, etag):
                return False
            (self._folder / key).unlink()
            _force_to_disk(self._folder)
            return True

    def keys(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted."""
        names = [entry.name for entry in self._folder.iterdir()] if self._folder.is_dir() else []
        return sorted(name for name in names if name.startswith(prefix) and not name.startswith("."))

    def _has(self, key: str, etag: str) -> bool:
        current = self.get(key)
        return current is not None and current.etag == etag

    def _write_partial(self, key: str, body: bytes) -> Path:
        """Write the body where nobody looks, and wait until the disk has it: a power loss must not cut it."""
        self._make_folder()
        partial = self._folder / f".{key}.{uuid4().hex}"
        try:
            with partial.open("wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        return partial

    def _make_folder(self) -> None:
        missing = [folder for folder in (self._folder, *self._folder.parents) if not folder.exists()]
        self._folder.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            _force_to_disk(folder.parent)

    def _locked(self) -> FileLock:
        return FileLock(self._folder / ".lock")


def _etag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _force_to_disk(folder: Path) -> None:
    """Wait until the disk has the folder's list of names."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

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
        age_s: seconds since it was put, by the clock of where it is stored.
    """

    body: bytes
    etag: str
    age_s: float


class ObjectStore(Protocol):
    """Named objects that can be replaced only by who saw them last."""

    def get(self, key: str) -> StoredObject | None:
        """The object, or None when there is none."""

    def put_if_absent(self, key: str, body: bytes) -> bool:
        """Create the object; False when it exists."""

    def put_if_match(self, key: str, body: bytes, etag: str) -> bool:
        """Replace the object that has `etag`; False when it is another one by now, or gone."""

    def delete_if_match(self, key: str, etag: str) -> bool:
        """Remove the object that has `etag`; False when it is another one by now, or gone."""

    def keys(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted."""


class LocalObjectStore:
    """Objects as files of one folder; a lock file makes compare and replace one step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> StoredObject | None:
        """The object, or None when there is none."""
        try:
            with (self._folder / key).open("rb") as content:
                body, put_at = content.read(), os.fstat(content.fileno()).st_mtime
        except FileNotFoundError:
            return None
        return StoredObject(body, hashlib.sha256(body).hexdigest(), time.time() - put_at)

    def put_if_absent(self, key: str, body: bytes) -> bool:
        """Create the object by an atomic hard link; False when it exists."""
        partial = self._write_partial(key, body)
        try:
            os.link(partial, self._folder / key)
        except FileExistsError:
            return False
        finally:
            partial.unlink()
        return True

    def put_if_match(self, key: str, body: bytes, etag: str) -> bool:
        """Replace the object that has `etag`; False when it is another one by now, or gone."""
        with self._locked():
            if not self._has(key, etag):
                return False
            self._write_partial(key, body).replace(self._folder / key)
            return True

    def delete_if_match(self, key: str, etag: str) -> bool:
        """Remove the object that has `etag`; False when it is another one by now, or gone."""
        with self._locked():
            if not self._has(key, etag):
                return False
            (self._folder / key).unlink()
            return True

    def keys(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted."""
        names = [entry.name for entry in self._folder.iterdir()] if self._folder.is_dir() else []
        return sorted(name for name in names if name.startswith(prefix) and not name.startswith("."))

    def _has(self, key: str, etag: str) -> bool:
        current = self.get(key)
        return current is not None and current.etag == etag

    def _write_partial(self, key: str, body: bytes) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / f".{key}.{uuid4().hex}"
        try:
            partial.write_bytes(body)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        return partial

    def _locked(self) -> FileLock:
        return FileLock(self._folder / ".lock")

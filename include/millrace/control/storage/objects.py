"""Small objects with conditional puts in a folder, such as leases.

A writer can replace an object only if it has read the newest content. The interface is that of S3 (`If-None-Match`,
`If-Match`), so that a bucket can replace a folder.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

from filelock import FileLock


@dataclass(frozen=True)
class StoredObject:
    """An object that was read.

    Attributes:
        body: its content.
        etag: its etag, which conditional puts compare.
        age_s: a lower limit of the seconds since its last change, independent of clocks.
    """

    body: bytes
    etag: str
    age_s: float


class LocalObjectStore:
    """Objects as files of a folder; a lock file makes compare and replace atomic.

    A shared folder has no reliable clock: some file systems use the clock of the writer. So the age of an object is the
    time for which this process has seen it unchanged, by a monotonic clock.

    Args:
        folder: the folder.
        mode: who may read and write the files; the umask of the process restricts it further.
    """

    def __init__(self, folder: Path, mode: int = 0o666) -> None:
        self._folder = folder
        self._mode = mode
        self._first_reads: dict[str, tuple[str, float]] = {}

    def get(self, key: str) -> StoredObject | None:
        """Return the object; None if there is none."""
        try:
            body = (self._folder / key).read_bytes()
        except FileNotFoundError:
            self._first_reads.pop(key, None)
            return None
        etag, now = _etag(body), time.monotonic()
        last_etag, since = self._first_reads.get(key, ("", now))
        if last_etag != etag:
            since = now
            self._first_reads[key] = (etag, since)
        return StoredObject(body, etag, now - since)

    def put_if_absent(self, key: str, body: bytes) -> str:
        """Create the object by an atomic hard link, and return its etag; empty if the object exists already."""
        written = self._write_partial(key, body)
        try:
            os.link(written, self._folder / key)
        except FileExistsError:
            return ""
        finally:
            written.unlink()
        force_to_disk(self._folder)
        return _etag(body)

    def put_if_match(self, key: str, body: bytes, etag: str) -> str:
        """Replace the object with this etag, and return the new etag; empty if no object has this etag any more."""
        with FileLock(self._folder / ".lock"):
            if not self._has(key, etag):
                return ""
            self._write_partial(key, body).replace(self._folder / key)
            force_to_disk(self._folder)
            return _etag(body)

    def delete_if_match(self, key: str, etag: str) -> bool:
        """Delete the object with this etag; false if no object has this etag any more."""
        with FileLock(self._folder / ".lock"):
            if not self._has(key, etag):
                return False
            (self._folder / key).unlink()
            force_to_disk(self._folder)
            return True

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that start with `prefix`, sorted."""
        names = [entry.name for entry in self._folder.iterdir()] if self._folder.is_dir() else []
        return sorted(name for name in names if name.startswith(prefix) and not name.startswith("."))

    def marks(self) -> dict[str, str]:
        """Return key -> a mark that changes whenever the object changes, without reading the objects."""
        entries = os.scandir(self._folder) if self._folder.is_dir() else ()
        stats = {entry.name: entry.stat() for entry in entries if not entry.name.startswith(".")}
        return {name: f"{stat.st_mtime_ns}-{stat.st_ino}-{stat.st_size}" for name, stat in stats.items()}

    def _has(self, key: str, etag: str) -> bool:
        current = self.get(key)
        return current is not None and current.etag == etag

    def _write_partial(self, key: str, body: bytes) -> Path:
        """Write the body to a hidden file, and wait until it is on the disk, so that a power loss cannot damage it."""
        missing = [folder for folder in (self._folder, *self._folder.parents) if not folder.exists()]
        self._folder.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            force_to_disk(folder.parent)
        written = self._folder / f".{key}.{uuid4().hex}"
        try:
            with open(written, "wb", opener=partial(os.open, mode=self._mode)) as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            written.unlink(missing_ok=True)
            raise
        return written


def _etag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def force_to_disk(folder: Path) -> None:
    """Wait until the names in the folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The bytes of a stored file, whose readers can distinguish errors of the storage from errors of the content."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import IO, TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_READ_AHEAD = 128 * 1024


class _StoredBytes(io.RawIOBase):
    """An open file whose errors `translate_errors` translates."""

    def __init__(self, opened: IO[bytes], translate_errors: Callable[[], AbstractContextManager[None]]) -> None:
        self._opened = opened
        self._translate_errors = translate_errors

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._opened.seekable()

    def readinto(self, buffer: WriteableBuffer) -> int:
        with self._translate_errors():
            return int(self._opened.readinto(buffer))  # type: ignore[attr-defined]

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._translate_errors():
            return self._opened.seek(offset, whence)

    def tell(self) -> int:
        return self._opened.tell()

    def close(self) -> None:
        self._opened.close()
        super().close()


def stored_bytes(
    opened: IO[bytes], translate_errors: Callable[[], AbstractContextManager[None]]
) -> io.BufferedReader[Any]:
    """Return a reader of an open file that never raises an error of the storage as an error of the content.

    Readers of gzip, Parquet and Avro raise `OSError` and `ValueError` for errors of the content.

    Args:
        opened: the file, preferably without a buffer.
        translate_errors: returns a context that raises `NotReadyError` or `StorageError` for errors of the storage.
    """
    return io.BufferedReader(_StoredBytes(opened, translate_errors), _READ_AHEAD)


def sha256_of(content: BinaryIO) -> str:
    """Return the SHA-256 of what is left of an open file."""
    digest = hashlib.sha256()
    for chunk in iter(partial(content.read, _READ_AHEAD), b""):
        digest.update(chunk)
    return digest.hexdigest()

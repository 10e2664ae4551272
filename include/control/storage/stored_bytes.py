"""The bytes of a stored file, whose readers can tell trouble with the storage from a defect of the content."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_AHEAD = 128 * 1024


class _StoredBytes(io.RawIOBase):
    """Passes everything on to an open file, and lets `trouble` translate what goes wrong there."""

    def __init__(self, opened: IO[bytes], trouble: Callable[[], AbstractContextManager[None]]) -> None:
        self._opened = opened
        self._trouble = trouble

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._opened.seekable()

    def readinto(self, buffer: WriteableBuffer) -> int:
        with self._trouble():
            return int(self._opened.readinto(buffer))  # type: ignore[attr-defined]

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._trouble():
            return self._opened.seek(offset, whence)

    def tell(self) -> int:
        return self._opened.tell()

    def close(self) -> None:
        self._opened.close()
        super().close()


def stored_bytes(opened: IO[bytes], trouble: Callable[[], AbstractContextManager[None]]) -> io.BufferedReader[Any]:
    """Read an open file so that an error of the storage in the middle of it is never taken for one of its content.

    Readers of gzip, Parquet and Avro raise `OSError` and `ValueError` for what is wrong with the bytes.

    Args:
        opened: the file; best without a buffer of its own.
        trouble: makes a context that raises `NotReadyError` or `StorageError` in the place of the storage's error.
    """
    return io.BufferedReader(_StoredBytes(opened, trouble), _AHEAD)

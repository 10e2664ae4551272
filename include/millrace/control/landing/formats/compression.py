"""Compressed landing files: the compression by the file name, and the check of the bytes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import zstandard

from millrace.contracts.spec.bronze_sources import FileLimits
from millrace.control.landing.landing import LandingFile

STEP = 1 << 11
"""Bytes that are unpacked at once: zstd may expand them to 32,768 times as many."""

UNPACKING_ERRORS = (OSError, EOFError, zlib.error, zstandard.ZstdError)
"""What reading a file raises whose compression is broken."""


@dataclass(frozen=True)
class Packing:
    """One way to compress a whole file.

    Attributes:
        name: its usual name.
        suffix: the end of the names of such files.
        magic: their first bytes.
        member: makes the decompressor of one member (gzip) or frame (zstd); a file has one or several of them.
        open: opens the content of a stored file.
    """

    name: str
    suffix: str
    magic: bytes
    member: Callable[[], Any]
    open: Callable[[BinaryIO], Any]


_PACKINGS = (
    Packing("gzip", ".gz", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31), gzip.open),
    Packing(
        "zstd",
        ".zst",
        b"\x28\xb5\x2f\xfd",
        lambda: zstandard.ZstdDecompressor().decompressobj(),
        lambda stored: zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True),
    ),
)


def packing_of(name: str) -> Packing | None:
    """Return the packing by a file's name.

    >>> [packing and packing.name for packing in map(packing_of, ("a.csv.gz", "a.json.zst", "a.json"))]
    ['gzip', 'zstd', None]
    """
    return next((packing for packing in _PACKINGS if name.endswith(packing.suffix)), None)


def open_unpacked(name: str, stored: BinaryIO) -> BinaryIO:
    """Open the content of a stored file."""
    packing = packing_of(name)
    return cast(BinaryIO, packing.open(stored)) if packing else stored


@contextmanager
def unpacked(path: LandingFile) -> Iterator[BinaryIO]:
    """Open the content of a landing file."""
    with path.open() as stored, open_unpacked(path.name, stored) as content:
        yield content


class PackingCheck:
    """Checks the compression of one file while its bytes are read."""

    def __init__(self, name: str, size: int, limits: FileLimits) -> None:
        self._name = name
        self._packing = packing_of(name)
        self._size, self._limits = max(size, 1), limits  # an empty file may grow while it is read
        self._unpacked = 0
        self._member: Any = None
        self._head = b""
        self._defect = ""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take the next bytes of the file, and yield them unpacked.

        Raises:
            ValueError: the file is over a limit.
        """
        self._head = self._head or chunk[:4]
        if not self._packing:
            yield chunk
            return
        for start in range(0, len(chunk), STEP):
            if self._defect:
                return
            for piece in self._unpack(self._packing, chunk[start : start + STEP]):
                self._unpacked += len(piece)
                if self._unpacked > max(self._limits.record, self._limits.expansion * self._size):
                    found = (
                        f"it has more than {self._unpacked // self._size} times its size of {self._size} bytes unpacked"
                    )
                    raise self._limits.over("expansion", found)
                yield piece

    def defect(self) -> str:
        """Return why the file cannot be loaded, after all of it was fed; empty for a sound file."""
        actual = next((packing for packing in _PACKINGS if self._head.startswith(packing.magic)), None)
        if actual and actual != self._packing:
            return f"{actual.name} data under the name {self._name}; it must end in {actual.suffix}"
        if self._packing and self._head and not self._defect and not self._member.eof:
            return f"truncated {self._packing.name}: the file ends before its data does; have it delivered again"
        return self._defect

    def _unpack(self, packing: Packing, data: bytes) -> Iterator[bytes]:
        """Decompress bytes that may contain the end of one member and the start of the next."""
        try:
            while data:
                if self._member is None or self._member.eof:
                    self._member = packing.member()
                yield self._member.decompress(data)
                data = self._member.unused_data
        except (zlib.error, zstandard.ZstdError) as error:
            self._defect = f"not a sound {packing.name} file ({error}); have it delivered again"

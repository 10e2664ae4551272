"""Compressed landing files: what a name promises, and whether the bytes keep it to their end."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import zstandard

_AT_ONCE = 1 << 14
"""Bytes that are unpacked at once: zstd may make several thousand times as many of them."""


@dataclass(frozen=True)
class Packing:
    """One way to compress a whole file.

    Attributes:
        name: what people call it.
        suffix: how the names of such files end.
        magic: what their bytes begin with.
        member: makes what unpacks one member (gzip) or frame (zstd); a file is one or several of them.
        open: the content of a stored file.
    """

    name: str
    suffix: str
    magic: bytes
    member: Callable[[], Any]
    open: Callable[[BinaryIO], BinaryIO]


def _open_gzip(stored: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, gzip.open(stored))


def _open_zstd(stored: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True))


PACKINGS = (
    Packing("gzip", ".gz", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31), _open_gzip),
    Packing("zstd", ".zst", b"\x28\xb5\x2f\xfd", lambda: zstandard.ZstdDecompressor().decompressobj(), _open_zstd),
)


def packing_of(name: str) -> Packing | None:
    """The packing that a file's name promises.

    >>> [packing and packing.name for packing in map(packing_of, ("a.csv.gz", "a.json.zst", "a.json"))]
    ['gzip', 'zstd', None]
    """
    return next((packing for packing in PACKINGS if name.endswith(packing.suffix)), None)


def unpacked(name: str, stored: BinaryIO) -> BinaryIO:
    """The content of a stored file."""
    packing = packing_of(name)
    return packing.open(stored) if packing else stored


class PackingCheck:
    """Goes through the bytes of one file as they are read, and finds what is wrong with their compression."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._packing = packing_of(name)
        self._member: Any = None
        self._head = b""
        self._defect = ""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file."""
        self._head = self._head or chunk[:4]
        for start in range(0, len(chunk), _AT_ONCE):
            if self._packing and not self._defect:
                self._unpack(self._packing, chunk[start : start + _AT_ONCE])

    def defect(self) -> str:
        """What forbids loading the file, now that all of it was fed; empty for a sound one."""
        found = next((packing for packing in PACKINGS if self._head.startswith(packing.magic)), None)
        if found and found != self._packing:
            return f"{found.name} data under the name {self._name}; it must end in {found.suffix}"
        if self._packing and self._head and not self._defect and not self._member.eof:
            return f"truncated {self._packing.name}: the file ends before its data does; have it delivered again"
        return self._defect

    def _unpack(self, packing: Packing, data: bytes) -> None:
        """Go through bytes that may hold the end of one member and the start of the next."""
        try:
            while data:
                if self._member is None or self._member.eof:
                    self._member = packing.member()
                self._member.decompress(data)
                data = self._member.unused_data
        except (zlib.error, zstandard.ZstdError) as error:
            self._defect = f"not a sound {packing.name} file ({error}); have it delivered again"

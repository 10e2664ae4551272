"""The check of the sizes of records in text, before Spark reads them: it has each of them whole in memory."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from typing import Any, AnyStr, Generic

from millrace.contracts.spec.bronze_sources import FileLimits

_CHUNK, _LEAST_CHUNK = 1 << 20, 1 << 12
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\n\r]*(\[?)")

# Values may have any length; the default limit of Python's reader is 128 KiB.
csv.field_size_limit(2**31 - 1)


class LineSizes(Generic[AnyStr]):
    """Checks the sizes of lines, while the bytes or the text of a file are read."""

    def __init__(self, limits: FileLimits, ends: tuple[AnyStr, ...]) -> None:
        self._limits = limits
        self._ends: tuple[AnyStr, ...] = ends
        self._size = 0

    def feed(self, data: AnyStr) -> None:
        """Take the next part of the file.

        Raises:
            ValueError: a line is over the limit.
        """
        step = min(_CHUNK, self._limits.record)
        for start in range(0, len(data), step):
            piece = data[start : start + step]
            first = min((at for at in map(piece.find, self._ends) if at >= 0), default=-1)
            self._size += len(piece) if first < 0 else first
            if self._size > self._limits.record:
                raise too_large(self._limits)
            if first >= 0:
                self._size = len(piece) - 1 - max(map(piece.rfind, self._ends))


class JsonSizes:
    """Checks the sizes of the lines of a JSON file while its bytes are read; an array may be one line."""

    def __init__(self, limits: FileLimits) -> None:
        self._lines = LineSizes(limits, (b"\n", b"\r"))
        self._is_array: bool | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file, unpacked.

        Raises:
            ValueError: a line is over the limit.
        """
        start = _ARRAY.match(data)
        if self._is_array is None and start and start.end() < len(data):
            self._is_array = bool(start[1])
        if not self._is_array:
            self._lines.feed(data)


class QuotedSizes:
    """Counts, while the text of a CSV file is read, how large a record may be; a line end within quotes ends none.

    It takes each quote for one around a value, and all after the first record of a part of the text for one record. So
    a file over the limit by this count may be sound.
    """

    def __init__(self, limits: FileLimits, quote: str) -> None:
        self._limits = limits
        self._quote = quote
        part, mark = f"[^{re.escape(quote)}\r\n]*+", re.escape(quote)
        self._to_end = re.compile(f"{part}(?:{mark}[^{mark}]*+{mark}{part})*+[\r\n]")
        self._within = False
        self._size = 0
        self.is_over = False

    def feed(self, text: str) -> None:
        """Take the next part of the text."""
        step = max(_LEAST_CHUNK, min(_CHUNK, self._limits.record // 4))
        for start in range(0, len(text), step):
            piece = text[start : start + step]
            begin = piece.find(self._quote) + 1 if self._within else 0
            end = self._to_end.match(piece, begin) if begin or not self._within else None
            before = self._size + (end.end() if end else len(piece))
            self._size = len(piece) - end.end() if end else before
            self.is_over |= max(before, self._size) > self._limits.record
            self._within ^= piece.count(self._quote) % 2 == 1


def check_records(lines: Iterable[str], dialect: dict[str, Any], limits: FileLimits) -> None:
    """Check the sizes of the records of a CSV file by parsing them.

    Raises:
        ValueError: a record is over the limit.
    """
    size = 0

    def counted() -> Iterator[str]:
        nonlocal size
        for line in lines:
            size += len(line)
            if size > limits.record:
                raise too_large(limits)
            yield line

    for _ in csv.reader(counted(), **dialect):
        size = 0


def too_large(limits: FileLimits) -> ValueError:
    """Return the error of a file with a record over the limit."""
    return limits.over("record", f"it has a record of more than {limits.record.human_readable(separator=' ')}")

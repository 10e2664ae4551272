"""The codecs and the encodings of the columns of a Parquet file, read from its footer, which is Thrift.

Arrow and DuckDB know them as well, but end the process at some damaged footers: at 15 and 6 of 4,000 (Arrow 26,
DuckDB 1.5), where Arrow itself reads the schema of each without harm.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO, NamedTuple

_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_ROW_GROUPS, _COLUMNS, _METADATA, _ENCODINGS, _CODEC = 4, 1, 3, 2, 4
"""Fields of the structs in a footer."""

_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT, _UUID = (
    (1, 2),
    3,
    (4, 5, 6),
    7,
    8,
    (9, 10),
    11,
    12,
    13,
)
"""The types of Thrift's compact protocol."""

_BROKEN = (IndexError, OverflowError, RecursionError, MemoryError, AttributeError, KeyError, TypeError)


class Packing(NamedTuple):
    """How columns of a file are stored: the names of their codecs, and the numbers of their encodings."""

    codecs: frozenset[str]
    encodings: frozenset[int]


def packing_of_columns(content: BinaryIO) -> Packing:
    """Return how the columns of a Parquet file are stored.

    Raises:
        ValueError: it has no sound footer.
    """
    size = content.seek(0, io.SEEK_END)
    content.seek(size - 8)
    length = int.from_bytes(content.read(4), "little")
    content.seek(size - 8 - length)
    try:
        groups = _struct(io.BytesIO(content.read(length))).get(_ROW_GROUPS, [])
        chunks = [chunk[_METADATA] for group in groups for chunk in group[_COLUMNS]]
        codecs = frozenset(_CODECS[chunk[_CODEC]] for chunk in chunks)
        return Packing(codecs, frozenset(encoding for chunk in chunks for encoding in chunk[_ENCODINGS]))
    except _BROKEN as error:
        raise ValueError(f"not a sound Parquet file (its footer: {error!r}); have it delivered again") from error


def _struct(stream: io.BytesIO) -> dict[int, Any]:
    """Return number -> value of the fields of a struct."""
    fields, number = dict[int, Any](), 0
    while head := stream.read(1)[0]:
        number = number + (head >> 4) if head >> 4 else _integer(stream)
        kind = head & 15
        fields[number] = kind == 1 if kind in _BOOLEANS else _value(stream, kind)
    return fields


def _value(stream: io.BytesIO, kind: int) -> Any:
    if kind in _INTEGERS:
        return _integer(stream)
    if kind == _BINARY:
        return stream.read(_size(stream))
    if kind == _STRUCT:
        return _struct(stream)
    if kind in _LISTS:
        head = stream.read(1)[0]
        size = head >> 4 if head >> 4 < 15 else _size(stream)
        return [_value(stream, head & 15) for _ in range(size)]
    if kind == _MAP:
        size = _size(stream)
        kinds = stream.read(1)[0] if size else 0
        return [(_value(stream, kinds >> 4), _value(stream, kinds & 15)) for _ in range(size)]
    if kind == _DOUBLE:
        return stream.read(8)
    if kind == _UUID:
        return stream.read(16)
    if kind == _BYTE or kind in _BOOLEANS:  # within a list
        return stream.read(1)[0]
    raise IndexError(f"a value of type {kind}")


def _integer(stream: io.BytesIO) -> int:
    size = _size(stream)
    return (size >> 1) ^ -(size & 1)


def _size(stream: io.BytesIO) -> int:
    """Read a number of seven bits per byte, the low bits first."""
    value = place = 0
    while (byte := stream.read(1)[0]) >= 0x80:
        value |= (byte & 0x7F) << place
        place += 7
    return value | byte << place

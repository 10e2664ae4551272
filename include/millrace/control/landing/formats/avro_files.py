"""The check of Avro files, with all their records, before Spark reads them.

Over Spark Connect, Spark does not name the Avro file that it could not read (its error has no message). So one broken
file would stop all others.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, cast

import fastavro
import pyarrow as pa
import zstandard
from pydantic import ByteSize

from millrace.contracts.spec.bronze_sources import FileLimits
from millrace.control.landing.formats.avro_schema import AvroField, Schema, fields_of, stored_schema
from millrace.control.landing.formats.compression import STEP

MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_MAX_VARINT_BYTES = 10

_JAVA = FileLimits(block=ByteSize(2**31 - 1))
"""The largest blocks that Java can have in memory."""

Unpack = Callable[[bytes, int], bytes]


class _LargeBlockError(Exception):
    """Raised when a block is larger than the limit."""


def read_avro(stream: BinaryIO, limits: FileLimits) -> tuple[AvroField, ...]:
    """Return the fields of an Avro file after reading all of it.

    Raises:
        ValueError: it is not a sound Avro file, or Spark has no columns for its records, or a block is over the limit.
    """
    fields, records = open_avro(stream, limits)
    for _ in records:
        pass
    return fields


def open_avro(stream: BinaryIO, limits: FileLimits = _JAVA) -> tuple[tuple[AvroField, ...], Iterator[dict[str, Any]]]:
    """Return the fields of an Avro file, and an iterator of its records, which raises the errors of `read_avro`.

    The values are those that are stored: times and dates are numbers, decimals bytes.

    Raises:
        ValueError: it has no header of an Avro file, or Spark has no columns for its records.
    """
    schema, codec, sync = _read_header(stream)
    return fields_of(schema), _records(stream, stored_schema(schema), codec, sync, limits)


def _records(stream: BinaryIO, schema: Schema, codec: str, sync: bytes, limits: FileLimits) -> Iterator[dict[str, Any]]:
    try:
        while first := stream.read(1):
            records = _read_long(stream, first)
            if (size := _read_long(stream)) > limits.block:
                raise _LargeBlockError
            block = _UNPACK[codec](_read_exactly(stream, size), limits.block)
            content = io.BytesIO(block)
            for _ in range(records):
                yield cast(dict[str, Any], fastavro.schemaless_reader(content, schema, None))
            if content.tell() != len(block):
                raise ValueError(f"a block has more in it than its {records} records")
            if _read_exactly(stream, _SYNC_SIZE) != sync:
                raise ValueError("a block does not end where it should")
    except _LargeBlockError as error:
        raise limits.over("block", "it has a larger block of records") from error
    except _BROKEN as error:
        raise ValueError(f"not a sound Avro file ({error}); have it delivered again") from error


def _read_header(stream: BinaryIO) -> tuple[Schema, str, bytes]:
    """Return (the schema of the records, the compression of the blocks, the bytes at the end of each block)."""
    if stream.read(len(MAGIC)) != MAGIC:
        raise ValueError("not an Avro file, or one that is compressed as a whole: its blocks may be, the file not")
    try:
        metadata: dict[str, bytes] = {}
        while count := _read_long(stream):
            if count < 0:  # then the size of these entries in bytes comes first
                _read_long(stream)
            for _ in range(abs(count)):
                key = _read_exactly(stream, _read_long(stream)).decode()
                metadata[key] = _read_exactly(stream, _read_long(stream))
        schema, sync = json.loads(metadata["avro.schema"]), _read_exactly(stream, _SYNC_SIZE)
    except (*_BROKEN, KeyError) as error:
        raise ValueError(f"not a sound Avro file (its header: {error}); have it delivered again") from error
    codec = metadata.get("avro.codec", b"null").decode(errors="replace")
    if codec not in _UNPACK:
        raise ValueError(f"its blocks are compressed by {codec}; known are {', '.join(_UNPACK)}")
    return schema, codec, sync


def _read_long(stream: BinaryIO, first: bytes = b"") -> int:
    """Read a number in Avro's form: seven bits per byte, the low bits first, zigzag; `first` is its first byte."""
    value = 0
    for place in range(_MAX_VARINT_BYTES):
        (byte,) = (place == 0 and first) or _read_exactly(stream, 1)
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise ValueError("a number has no end")


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size) if size >= 0 else b""
    if len(data) != size:
        raise ValueError("it ends too early")
    return data


def _unpack_snappy(block: bytes, most: int) -> bytes:
    """Unpack Snappy data, which begins with its unpacked size; Avro appends the checksum of the content."""
    length = next(place for place, byte in enumerate(block, 1) if byte < 0x80)
    size = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(block[:length]))
    if size > most:
        raise _LargeBlockError
    content = pa.Codec("snappy").decompress(block[:-4], decompressed_size=size, asbytes=True)
    if zlib.crc32(content).to_bytes(4, "big") != block[-4:]:
        raise ValueError("a block has another check sum than it says")
    return bytes(content)


def _unpack_zstd(block: bytes, most: int) -> bytes:
    frame, content, start = zstandard.ZstdDecompressor().decompressobj(), bytearray(), 0
    while start < len(block) and not frame.eof:
        content += frame.decompress(block[start : start + STEP])
        start += STEP
        if len(content) > most:
            raise _LargeBlockError
    if not frame.eof:
        raise ValueError("a block ends too early")
    return bytes(content)


def _unpack_by(member: Callable[[], Any]) -> Unpack:
    def unpack(block: bytes, most: int) -> bytes:
        unpacking = member()
        content: bytes = unpacking.decompress(block, most + 1)
        if len(content) > most:
            raise _LargeBlockError
        if not unpacking.eof:
            raise ValueError("a block ends too early")
        return content

    return unpack


_UNPACK: Mapping[str, Unpack] = {
    "null": lambda block, _: block,
    "deflate": _unpack_by(partial(zlib.decompressobj, wbits=-15)),
    "snappy": _unpack_snappy,
    "zstandard": _unpack_zstd,
    "bzip2": _unpack_by(bz2.BZ2Decompressor),
    "xz": _unpack_by(lzma.LZMADecompressor),
}
"""Codec -> the function that unpacks a block into a stated number of bytes at most, for the codecs that Spark reads."""

_CODEC_ERRORS = (LookupError, StopIteration, EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
_BROKEN = (ValueError, OverflowError, RecursionError, *_CODEC_ERRORS)

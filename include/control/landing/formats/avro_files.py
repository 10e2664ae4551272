"""Avro files: their schema, and whether every record of them can be read, before Spark meets them.

Spark does not say over Spark Connect which Avro file it could not read (its error has no message), so that one broken
file would stop all others.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import BinaryIO, NamedTuple

import fastavro
import pyarrow as pa
import zstandard

from include.control.landing.formats.avro_schema import AvroField, Schema, fields_of, stored_form

MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_LONGEST_VARINT = 10


class _Header(NamedTuple):
    """What an Avro file begins with.

    Attributes:
        schema: of its records.
        codec: what its blocks are compressed by.
        sync: what each block ends with.
    """

    schema: Schema
    codec: str
    sync: bytes


def read_avro(stream: BinaryIO) -> tuple[AvroField, ...]:
    """The fields of an Avro file, which is read through.

    Raises:
        ValueError: it is not a sound Avro file, or its records have no columns that Spark can have.
    """
    header = _header(stream)
    fields, stored = fields_of(header.schema), stored_form(header.schema)
    try:
        while first := stream.read(1):
            records = _long(stream, first)
            _read_records(_UNPACK[header.codec](_exactly(stream, _long(stream))), records, stored)
            if _exactly(stream, _SYNC_SIZE) != header.sync:
                raise ValueError("a block does not end where it should")
    except _BROKEN as error:
        raise ValueError(f"not a sound Avro file ({error}); have it delivered again") from error
    return fields


def avro_fields(stream: BinaryIO) -> tuple[AvroField, ...]:
    """The fields of an Avro file by its first bytes alone.

    Raises:
        ValueError: it does not begin as an Avro file does, or its records have no columns that Spark can have.
    """
    return fields_of(_header(stream).schema)


def _header(stream: BinaryIO) -> _Header:
    if stream.read(len(MAGIC)) != MAGIC:
        raise ValueError("not an Avro file, or one that is compressed as a whole: its blocks may be, the file not")
    try:
        stated = _metadata(stream)
        schema, sync = json.loads(stated["avro.schema"]), _exactly(stream, _SYNC_SIZE)
    except (*_BROKEN, KeyError) as error:
        raise ValueError(f"not a sound Avro file (its header: {error}); have it delivered again") from error
    codec = stated.get("avro.codec", b"null").decode(errors="replace")
    if codec not in _UNPACK:
        raise ValueError(f"its blocks are compressed by {codec}; known are {', '.join(_UNPACK)}")
    return _Header(schema, codec, sync)


def _read_records(block: bytes, records: int, stored: Schema) -> None:
    content = io.BytesIO(block)
    for _ in range(records):
        fastavro.schemaless_reader(content, stored, None)
    if content.tell() != len(block):
        raise ValueError(f"a block has more in it than its {records} records")


def _metadata(stream: BinaryIO) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    while count := _long(stream):
        if count < 0:  # then the size of these entries in bytes comes first
            _long(stream)
        for _ in range(abs(count)):
            key = _exactly(stream, _long(stream)).decode()
            found[key] = _exactly(stream, _long(stream))
    return found


def _long(stream: BinaryIO, first: bytes = b"") -> int:
    """A number as Avro writes it: seven bits a byte, the low ones first, zigzag; `first` was read already."""
    value = 0
    for place in range(_LONGEST_VARINT):
        (byte,) = (place == 0 and first) or _exactly(stream, 1)
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise ValueError("a number has no end")


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size) if size >= 0 else b""
    if len(data) != size:
        raise ValueError("it ends too early")
    return data


def _unpack_snappy(block: bytes) -> bytes:
    """Snappy data begins with its unpacked size; Avro puts the check sum of the content behind it."""
    length = next(place for place, byte in enumerate(block, 1) if byte < 0x80)
    size = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(block[:length]))
    content = pa.Codec("snappy").decompress(block[:-4], decompressed_size=size, asbytes=True)
    if zlib.crc32(content).to_bytes(4, "big") != block[-4:]:
        raise ValueError("a block has another check sum than it says")
    return bytes(content)


def _unpack_zstd(block: bytes) -> bytes:
    frame = zstandard.ZstdDecompressor().decompressobj()
    content = frame.decompress(block)
    if not frame.eof:
        raise ValueError("a block ends too early")
    return content


_UNPACK: Mapping[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "deflate": lambda block: zlib.decompress(block, wbits=-15),
    "snappy": _unpack_snappy,
    "zstandard": _unpack_zstd,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
}
"""Codec -> what unpacks a block; those that Spark knows."""

_OF_CODECS = (LookupError, StopIteration, EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
_BROKEN = (ValueError, MemoryError, OverflowError, *_OF_CODECS)

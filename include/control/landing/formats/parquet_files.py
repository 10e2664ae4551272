"""The columns and the layout of Parquet files, by their footers."""

from __future__ import annotations

import hashlib
import io
import json
import re
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from include.control.landing.formats.parquet_footers import Packing
from include.control.landing.formats.values import MAX_PRECISION
from include.control.log.batch import BY_ROW, COPIED

_TYPES = frozenset({"None", "Null", "String", "Enum", "JSON", "BSON", "Int", "Decimal", "Date", "Timestamp"})
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"})
_BYTE_STREAM_SPLIT = 9
_ENCODINGS = frozenset(range(_BYTE_STREAM_SPLIT))
"""The logical types, the codecs and the encodings that Spark 4.1 reads; its reader of rows reads more encodings."""

_SIGNATURE_SIZE = 28
"""The bytes after a footer that is not encrypted itself, of a file with encrypted columns."""

METADATA = "_metadata"
"""Spark's own column with the file of a row; it finds no file where a file has a column of this name."""

_VARIANT = re.compile(r" \(Variant\(\d+\)\) \{$", re.MULTILINE)


def parquet_file(content: BinaryIO) -> pq.ParquetFile:
    """Open a Parquet file; its times in the old type INT96 are microseconds, since nanoseconds reach only to 2262.

    Raises:
        ValueError: it is no sound Parquet file, is encrypted, or has a type that Arrow does not know.
    """
    try:
        file = pq.ParquetFile(content, pre_buffer=False, buffer_size=1 << 20, coerce_int96_timestamp_unit="us")
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"it has a column that cannot be read ({error}); have it written as another type") from error
    except (ValueError, OSError) as error:  # Arrow raises either
        raise ValueError(f"not a sound Parquet file ({str(error).strip()}); have it delivered again") from error
    content.seek(-8, io.SEEK_END)
    if int.from_bytes(content.read(4), "little") - file.metadata.serialized_size == _SIGNATURE_SIZE:
        # Arrow 26 ends the process where it looks at the metadata of an encrypted column.
        raise ValueError("it has encrypted columns, and there is no key; have it delivered without encryption")
    return file


def leaves_of(file: pq.ParquetFile) -> list[pq.ColumnSchema]:
    """Return the columns as they are stored: a struct has one for each of its fields, however deep."""
    return [file.schema.column(number) for number in range(len(file.schema))]


def logical_type(leaf: pq.ColumnSchema) -> dict[str, Any]:
    """Return the logical type of a stored column: its `Type`, and what belongs to that.

    The name alone, `leaf.logical_type.type`, is the same for INTERVAL and for no type at all.
    """
    return dict(json.loads(leaf.logical_type.to_json()))


def is_unknown_to_spark(leaf: pq.ColumnSchema) -> bool:
    """Return whether Spark refuses every file with such a column, also where nobody reads the column."""
    kind = logical_type(leaf)
    is_known = kind["Type"] in _TYPES and kind.get("precision", 0) <= MAX_PRECISION
    return not is_known or kind.get("timeUnit") == "nanoseconds"


def has_variants(file: pq.ParquetFile) -> bool:
    """Return whether a file has VARIANT values; Spark reads them, and Arrow takes them for structs of bytes."""
    return _VARIANT.search(str(file.schema)) is not None


def layout_of(file: pq.ParquetFile, packing: Packing) -> str:
    """Return a digest of the column types, after the way in which Spark can read the file: `COPIED`, `BY_ROW` or empty.

    Raises:
        ValueError: Spark cannot read it in any way.
    """
    leaves = leaves_of(file)
    odd = [leaf.path for leaf in leaves if is_unknown_to_spark(leaf)]
    odd += [name for name in file.schema_arrow.names if name.lower() == METADATA]
    odd += sorted(packing.codecs - _CODECS)
    way = COPIED if odd or packing.encodings - _ENCODINGS else ""
    if way and has_variants(file):
        if odd:
            raise ValueError(f"its VARIANT columns cannot be read beside {', '.join(odd[:3])}; have one kind left out")
        way = BY_ROW
    kinds = [[str(kind) for kind in file.schema_arrow.types], [leaf.physical_type for leaf in leaves]]
    return way + digest(kinds)


def digest(kinds: list[Any]) -> str:
    """Return a digest of column types; Spark cannot read files with different types together."""
    return hashlib.sha256(json.dumps(kinds, sort_keys=True).encode()).hexdigest()[:16]

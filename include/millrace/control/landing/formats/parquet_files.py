"""The columns and the layout of Parquet files, by their footers."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from millrace.control.landing.formats.parquet_footers import (
    Footer,
    columns_of_footer,
    columns_without_type,
    metadata_without,
    packing_of_columns,
    read_footer,
)
from millrace.control.landing.formats.values import MAX_PRECISION
from millrace.control.log.batch import COPIED

_TYPES = frozenset({"None", "Null", "String", "Enum", "JSON", "BSON", "Int", "Decimal", "Date", "Timestamp"})
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"})
_BYTE_STREAM_SPLIT = 9
_ENCODINGS = frozenset(range(_BYTE_STREAM_SPLIT))
"""The logical types, the codecs and the encodings that Spark 4.1 reads."""

_OPTIONS = {
    "pre_buffer": False,
    "buffer_size": 1 << 20,
    "coerce_int96_timestamp_unit": "us",
    "page_checksum_verification": True,
}

_SIGNATURE_SIZE = 28
"""The bytes after a footer that is not encrypted itself, of a file with encrypted columns."""

METADATA = "_metadata"
"""Spark's own column with the file of a row; it finds no file where a file has a column of this name."""


@dataclass(frozen=True)
class ParquetContent:
    """A Parquet file.

    Attributes:
        file: the file as Arrow reads it, without the columns that it cannot read.
        footer: its footer.
        unread: the columns that Arrow cannot read, each with the cause.
    """

    file: pq.ParquetFile
    footer: Footer
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in their order."""
        return tuple(column.name for column, *_ in columns_of_footer(self.footer))

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return int(self.footer.num_rows)

    @property
    def variants(self) -> tuple[str, ...]:
        """The columns of VARIANT values, which Spark reads, and Arrow takes for structs of bytes."""
        return tuple(column.name for column, *_ in columns_of_footer(self.footer) if _is_variant(column))

    @property
    def not_copied(self) -> dict[str, str]:
        """The columns with VARIANT values within structs or lists, which no copy can have, each with the cause."""
        columns = columns_of_footer(self.footer)
        within = (column.name for column, *parts in columns if any(map(_is_variant, parts)))
        return dict.fromkeys(within, "VARIANT values within others, in a file that Spark does not read")


def _is_variant(element: Any) -> bool:
    return element.logicalType is not None and element.logicalType.VARIANT is not None


def parquet_file(content: BinaryIO) -> ParquetContent:
    """Open a Parquet file; its times in the old type INT96 are microseconds, since nanoseconds reach only to 2262.

    Raises:
        ValueError: it is no sound Parquet file, or is encrypted.
    """
    try:
        file = pq.ParquetFile(content, **_OPTIONS)
    except pa.ArrowNotImplementedError:
        return _without_unread(content, read_footer(content))
    except (ValueError, OSError) as error:  # Arrow raises either
        raise _unsound(error) from error
    content.seek(-8, io.SEEK_END)
    if int.from_bytes(content.read(4), "little") - file.metadata.serialized_size == _SIGNATURE_SIZE:
        # Arrow 26 ends the process where it looks at the metadata of an encrypted column.
        raise ValueError("it has encrypted columns, and there is no key; have it delivered without encryption")
    return ParquetContent(file, read_footer(content))


def _without_unread(content: BinaryIO, footer: Footer) -> ParquetContent:
    try:
        unread = columns_without_type(footer)
        file = pq.ParquetFile(content, metadata=metadata_without(footer, unread), **_OPTIONS)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise _unsound(error) from error
    return ParquetContent(file, footer, unread)


def _unsound(error: Exception) -> ValueError:
    return ValueError(f"not a sound Parquet file ({str(error).strip()}); have it delivered again")


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


def has_like_names(kind: pa.DataType) -> bool:
    """Return whether names of parts in one struct differ in nothing but case: Spark refuses every file with such ones.

    >>> has_like_names(pa.list_(pa.struct({"size": pa.int32(), "Size": pa.int32()})))
    True
    """
    parts = [kind.field(number) for number in range(kind.num_fields)]
    names = [part.name.lower() for part in parts] if pa.types.is_struct(kind) else []
    return len(set(names)) < len(names) or any(has_like_names(part.type) for part in parts)


def layout_of(content: ParquetContent) -> str:
    """Return a digest of the column types, after `COPIED` if Spark cannot read the file itself."""
    file, packing = content.file, packing_of_columns(content.footer)
    leaves = leaves_of(file)
    is_odd = any(map(is_unknown_to_spark, leaves)) or any(name.lower() == METADATA for name in content.columns)
    is_odd |= any(map(has_like_names, file.schema_arrow.types))
    is_copied = is_odd or content.unread or packing.codecs - _CODECS or packing.encodings - _ENCODINGS
    kinds = [[str(kind) for kind in file.schema_arrow.types], [leaf.physical_type for leaf in leaves]]
    return (COPIED if is_copied else "") + digest([*kinds, content.variants if is_copied else ()])


def digest(kinds: list[Any]) -> str:
    """Return a digest of column types; Spark cannot read files with different types together."""
    return hashlib.sha256(json.dumps(kinds, sort_keys=True).encode()).hexdigest()[:16]

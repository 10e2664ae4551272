"""The footers of Parquet files, as Thrift has them: how columns are stored, and metadata of fewer columns.

Arrow and DuckDB read them as well, but end the process at some damaged footers: at 15 and 6 of 4,000 (Arrow 26,
DuckDB 1.5), where Arrow itself reads the schema of each without harm. Arrow opens no file with a type that it lacks.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterator
from functools import cache
from itertools import chain, compress, islice
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import thriftpy2
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.thrift import TException
from thriftpy2.transport import TMemoryBuffer

_PARQUET = """
struct Empty {}
struct Decimal {1: i32 scale, 2: i32 precision}
union Unit {1: Empty MILLIS, 2: Empty MICROS, 3: Empty NANOS}
struct Time {1: bool isAdjustedToUTC, 2: Unit unit}
struct Integer {1: byte bitWidth, 2: bool isSigned}
struct Variant {1: byte specification_version}
struct Place {1: string crs, 2: i32 algorithm}
union LogicalType {
  1: Empty STRING, 2: Empty MAP, 3: Empty LIST, 4: Empty ENUM, 5: Decimal DECIMAL, 6: Empty DATE, 7: Time TIME,
  8: Time TIMESTAMP, 10: Integer INTEGER, 11: Empty UNKNOWN, 12: Empty JSON, 13: Empty BSON, 14: Empty UUID,
  15: Empty FLOAT16, 16: Variant VARIANT, 17: Place GEOMETRY, 18: Place GEOGRAPHY
}
struct SchemaElement {
  1: i32 type, 2: i32 type_length, 3: i32 repetition_type, 4: string name, 5: i32 num_children, 6: i32 converted_type,
  7: i32 scale, 8: i32 precision, 9: i32 field_id, 10: LogicalType logicalType
}
struct ColumnMetaData {
  1: i32 type, 2: list<i32> encodings, 3: list<string> path_in_schema, 4: i32 codec, 5: i64 num_values,
  6: i64 total_uncompressed_size, 7: i64 total_compressed_size, 9: i64 data_page_offset, 10: i64 index_page_offset,
  11: i64 dictionary_page_offset
}
struct ColumnChunk {2: i64 file_offset, 3: ColumnMetaData meta_data}
struct RowGroup {1: list<ColumnChunk> columns, 2: i64 total_byte_size, 3: i64 num_rows}
struct FileMetaData {
  1: i32 version, 2: list<SchemaElement> schema, 3: i64 num_rows, 4: list<RowGroup> row_groups, 6: string created_by
}
"""
"""What is needed of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift."""

_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_FIXED_BYTES = 7
_MAGIC = b"PAR1"

_BROKEN = (TException, struct.error, LookupError, TypeError, AttributeError, ValueError, ArithmeticError)

Footer = Any
"""The struct FileMetaData of a file."""


class Packing(NamedTuple):
    """How columns of a file are stored: the names of their codecs, and the numbers of their encodings."""

    codecs: frozenset[str]
    encodings: frozenset[int]


@cache
def _thrift() -> Any:
    return thriftpy2.load_fp(io.StringIO(_PARQUET), "parquet_thrift")


def read_footer(content: BinaryIO) -> Footer:
    """Return the footer of a Parquet file.

    Raises:
        ValueError: it has no sound footer.
    """
    size = content.seek(0, io.SEEK_END)
    content.seek(size - 8)
    length = int.from_bytes(content.read(4), "little")
    content.seek(size - 8 - length)
    footer = _thrift().FileMetaData()
    try:
        footer.read(TCompactProtocol(TMemoryBuffer(content.read(length))))
        packing_of_columns(footer), columns_of_footer(footer)
    except (*_BROKEN, RecursionError, MemoryError) as error:
        raise ValueError(f"not a sound Parquet file (its footer: {error!r}); have it delivered again") from error
    return footer


def packing_of_columns(footer: Footer) -> Packing:
    """Return how the columns of a Parquet file are stored."""
    chunks = [chunk.meta_data for group in footer.row_groups for chunk in group.columns]
    codecs = frozenset(_CODECS[chunk.codec] for chunk in chunks)
    return Packing(codecs, frozenset(encoding for chunk in chunks for encoding in chunk.encodings))


def columns_of_footer(footer: Footer) -> list[list[Any]]:
    """Return the columns: of each its element of the schema, and the elements within it."""
    elements, columns = iter(footer.schema[1:]), list[list[Any]]()
    while column := list(_subtrees(elements, 1)):
        columns.append(column)
    return columns


def _subtrees(elements: Iterator[Any], count: int) -> Iterator[Any]:
    for element in islice(elements, count):
        yield element
        yield from _subtrees(elements, element.num_children or 0)


def columns_without_type(footer: Footer) -> dict[str, str]:
    """Return column -> why Arrow, which has refused the file, cannot read it."""
    columns, refused = {column.name: column for column, *_ in columns_of_footer(footer)}, dict[str, str]()
    for name in columns:
        try:
            metadata_without(footer, columns.keys() - {name})
        except pa.ArrowNotImplementedError as error:
            refused[name] = str(error)
    # Polars stores integers of 128 bits as bytes, and says only in the schema that Arrow reads what they are.
    bytes_only = [name for name, column in columns.items() if column.type == _FIXED_BYTES]
    return refused or dict.fromkeys(bytes_only, "bytes of a type that only its writer knows")


def metadata_without(footer: Footer, left_out: Collection[str]) -> pq.FileMetaData:
    """Return the metadata of a file without some columns.

    Raises:
        pa.ArrowNotImplementedError: Arrow lacks the type of another one.
    """
    thrift, columns = _thrift(), columns_of_footer(footer)
    kept = [column for column in columns if column[0].name not in left_out]
    is_kept = [column[0].name not in left_out for column in columns for part in column if not part.num_children]
    groups = [
        thrift.RowGroup(list(compress(group.columns, is_kept)), group.total_byte_size, group.num_rows)
        for group in footer.row_groups
    ]
    root = thrift.SchemaElement(name=footer.schema[0].name, num_children=len(kept))
    schema = [root, *chain.from_iterable(kept)]
    stored = TMemoryBuffer()
    thrift.FileMetaData(footer.version, schema, footer.num_rows, groups, footer.created_by).write(
        TCompactProtocol(stored)
    )
    content = stored.getvalue()
    return pq.read_metadata(io.BytesIO(b"".join((_MAGIC, content, len(content).to_bytes(4, "little"), _MAGIC))))

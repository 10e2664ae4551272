"""The values of Parquet files with types that Spark reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millrace.control.landing.formats.parquet_files import (
    has_like_names,
    is_unknown_to_spark,
    layout_of,
    leaves_of,
    logical_type,
    parquet_file,
)
from millrace.control.landing.formats.values import interval_text, json_text, time_texts, uuid_text
from millrace.control.log.batch import COPIED

_MAX_BATCH_ROWS, _MAX_BATCH_BYTES = 1 << 16, 1 << 26


def parquet_columns(content: BinaryIO) -> Iterator[list[pa.Array]]:
    """Yield the columns of a Parquet file with types that Spark reads, batch by batch, after an empty one.

    VARIANT values are opaque: the structs in which they are stored. A column that cannot be read is the cause, as text.

    Raises:
        ValueError: Arrow cannot read the file to its end, or it has VARIANT values within others, and only a value that
            Spark cannot read made a copy necessary.
    """
    opened = parquet_file(content)
    if opened.not_copied and not layout_of(opened).startswith(COPIED):
        raise ValueError("Spark cannot read it, and nothing else reads the VARIANT values within its columns")
    stored, variants = leaves_of(opened.file), opened.variants
    for batch in _batches(opened.file):
        leaves, arrays = iter(stored), dict[str, pa.Array]()
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            own = list(islice(leaves, _leaf_count(array.type)))
            if name not in opened.not_copied:
                arrays[name] = _opaque(array) if name in variants else _column(array, own)
        for name, cause in {**opened.unread, **opened.not_copied}.items():
            arrays[name] = pa.repeat(f"not read: {cause}", batch.num_rows)
        yield [arrays[name] for name in opened.columns]


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Yield an empty batch, and then all rows."""
    schema = file.schema_arrow
    yield pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    metadata = file.metadata
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    rows = min(_MAX_BATCH_ROWS, 1 + _MAX_BATCH_BYTES * metadata.num_rows // max(size, 1))
    try:
        yield from file.iter_batches(rows)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"it cannot be read to its end ({error}); have it delivered again") from error


def _column(array: pa.Array, leaves: list[pq.ColumnSchema]) -> pa.Array:
    if has_like_names(array.type):
        plain = _plain(array, iter(leaves))
        return pa.array(map(_json, plain.cast(_shown(plain.type))), pa.string())
    is_nanoseconds = pa.types.is_timestamp(array.type) and array.type.unit == "ns"
    return array if is_nanoseconds or not any(map(_is_odd, leaves)) else _plain(array, iter(leaves))


def _json(value: pa.Scalar) -> str | None:
    try:
        return json_text(value.as_py()) if value.is_valid else None
    except UnicodeDecodeError as error:
        return f"not read: {error}"


def _shown(kind: pa.DataType) -> pa.DataType:
    """Return a type in which dates and times are texts, because Python has none beyond the year 9999."""
    if pa.types.is_struct(kind):
        return pa.struct([(part.name, _shown(part.type)) for part in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(_shown(kind.key_type), _shown(kind.item_type))
    if _is_list(kind):
        return pa.list_(_shown(kind.value_type))
    return pa.string() if pa.types.is_temporal(kind) else kind


def _opaque(array: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.opaque(array.type, "VARIANT", "Parquet"), array)


def _is_odd(leaf: pq.ColumnSchema) -> bool:
    return leaf.physical_type == "INT96" or is_unknown_to_spark(leaf)


def _leaf_count(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(_leaf_count(field.type) for field in kind.fields)
    if pa.types.is_map(kind):
        return _leaf_count(kind.key_type) + _leaf_count(kind.item_type)
    return _leaf_count(kind.value_type) if _is_list(kind) else 1


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _plain(array: pa.Array, leaves: Iterator[pq.ColumnSchema]) -> pa.Array:
    """Return values with types that Spark reads; `leaves` are the stored columns of the array."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_plain(part, leaves) for part in array.flatten()]
        return pa.StructArray.from_arrays(parts, names=[field.name for field in kind.fields], mask=array.is_null())
    if pa.types.is_map(kind):
        entries = pa.concat_arrays([array])  # without the offset of a slice
        parts = [_plain(entries.keys, leaves), _plain(entries.items, leaves)]
        return pa.MapArray.from_arrays(entries.offsets, *parts, mask=array.is_null())
    if _is_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return pa.ListArray.from_arrays(offsets, _plain(array.flatten(), leaves), mask=array.is_null())
    return _plain_leaf(array.dictionary_decode() if pa.types.is_dictionary(kind) else array, next(leaves))


def _plain_leaf(array: pa.Array, leaf: pq.ColumnSchema) -> pa.Array:
    kind, logical = array.type, logical_type(leaf)["Type"]
    if leaf.physical_type == "INT96":
        return array.cast(pa.timestamp("us", "UTC"))
    if not is_unknown_to_spark(leaf):
        return array
    if logical in ("Timestamp", "Time"):
        return time_texts(array)
    if logical == "Float16":
        return array.cast(pa.float32())
    if isinstance(kind, pa.BaseExtensionType):
        array = array.storage
    if show := _TEXTS.get(logical):
        return pa.array([None if value is None else show(value) for value in array.to_pylist()], pa.string())
    return array


_TEXTS = {"UUID": uuid_text, "Decimal": "{:f}".format, "Interval": interval_text}
"""Logical type -> the function that shows a value of it as text."""

"""Plain copies of the Parquet and Avro files that Spark does not read: the same rows in types that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.control.landing.formats.avro_values import avro_columns
from millrace.control.landing.formats.parquet_values import parquet_columns
from millrace.control.landing.formats.values import MOST_MILLIS, time_texts
from millrace.control.landing.landing import LandingFile
from millrace.control.landing.reader_process import read_apart
from millrace.control.storage.arrow_files import arrow_place

COPY_OF = "file"
"""The column of a copy with the ledger's path of the file; `value_column` names the others."""


def value_column(number: int) -> str:
    """Return the name, in a copy, of the file's column of this number."""
    return f"column_{number}"


def variant_column(number: int) -> str:
    """Return the name, in a copy, of the file's column of this number if it has VARIANT values.

    A copy does not say that they are: they are read with a schema that does.
    """
    return f"variant_{number}"


def nanoseconds_column(number: int) -> str:
    """Return the column of a copy with the whole text of times whose nanoseconds a microsecond does not hold.

    Only a column of nanosecond times has one; it is null for all other times.
    """
    return f"nanoseconds_{number}"


def far_column(number: int) -> str:
    """Return the column of a copy with the milliseconds, as text, of times whose microseconds a long does not hold.

    Only a column of millisecond times has one; it is null for all other times, which are microseconds.
    """
    return f"far_{number}"


def copy_apart(path: LandingFile, size: int, source: LandingSource, target: LakePath) -> None:
    """Write a copy as `write_copy` does, but within the limits of the source, in the process that inspects such files.

    Raises:
        ValueError: the file, which has this size in bytes, is over a limit, or has an error that `write_copy` raises.
        NotReadyError, StorageError: the storage does not deliver it.
        OSError: the copy cannot be written.
    """
    read_apart(partial(write_copy, path, source.format, target), size, source.limits)


def write_copy(path: LandingFile, kind: str, target: LakePath) -> None:
    """Write a copy, as Parquet, of a file of one of the formats in `_COLUMNS_OF`; little of it is in memory at a time.

    Times of a day, UUIDs, intervals (ISO 8601) and decimals with more than 38 digits become text, half floats floats,
    nanosecond times microseconds, within structs, lists and maps text; a type without a name becomes its bytes.

    Raises:
        ValueError: the file cannot be read to its end, or has VARIANT values within others.
        NotReadyError, StorageError: the storage does not deliver it.
        OSError: the copy cannot be written.
    """
    filesystem, place = arrow_place(target)
    if isinstance(target, Path):  # a bucket has no folders
        target.parent.mkdir(parents=True, exist_ok=True)
    with path.open() as content:
        batches = (_batch(columns, path.path) for columns in _COLUMNS_OF[kind](content))
        first = next(batches)
        options = {"filesystem": filesystem, "compression": "zstd", "store_schema": False}
        with pq.ParquetWriter(place, first.schema, **options) as writer:
            for batch in batches:
                writer.write_batch(batch)


def _batch(columns: list[pa.Array], path: str) -> pa.RecordBatch:
    arrays = dict[str, pa.Array]()
    for number, array in enumerate(columns):
        if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
            arrays[value_column(number)], arrays[nanoseconds_column(number)] = _microseconds(array)
        elif pa.types.is_timestamp(array.type) and array.type.unit == "ms":
            arrays[value_column(number)], arrays[far_column(number)] = _of_millis(array)
        elif isinstance(array.type, pa.OpaqueType):
            arrays[variant_column(number)] = array.storage
        else:
            arrays[value_column(number)] = array
    indices = pa.array(np.zeros(len(columns[0]), np.int8))
    arrays[COPY_OF] = pa.DictionaryArray.from_arrays(indices, pa.array([path]))
    return pa.RecordBatch.from_pydict(arrays)


def _microseconds(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return nanosecond times as microseconds, and the whole text of each that has more digits."""
    numbers = array.cast(pa.int64())
    quotients = pc.divide(numbers, 1000)  # which is cut off, towards 1970
    rest = pc.subtract(numbers, pc.multiply(quotients, 1000))
    floor = pc.subtract(quotients, pc.less(rest, 0).cast(pa.int64()))
    texts = pc.if_else(pc.not_equal(rest, 0), time_texts(array), pa.scalar(None, pa.string()))
    return floor.cast(pa.timestamp("us", array.type.tz and "UTC")), texts


def _of_millis(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return millisecond times as microseconds, and the text of each number that is too great for that."""
    numbers = array.cast(pa.int64())
    fits = pc.and_(pc.less_equal(numbers, MOST_MILLIS), pc.greater_equal(numbers, -MOST_MILLIS))
    micros = pc.multiply(pc.if_else(fits, numbers, pa.scalar(None, pa.int64())), 1000)
    texts = pc.if_else(fits, pa.scalar(None, pa.string()), numbers.cast(pa.string()))
    return micros.cast(pa.timestamp("us", array.type.tz and "UTC")), texts


_COLUMNS_OF: dict[str, Callable[[BinaryIO], Iterator[list[pa.Array]]]] = {
    "parquet": parquet_columns,
    "avro": avro_columns,
}
"""Format -> what reads the columns of its files, batch by batch, after an empty one; nanosecond times as they are."""

"""The data files of an `ops` table, read some thousands of events at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from include.contracts.lake_path import LakePath
from include.control.storage.arrow_files import open_for_arrow
from include.errors import TornLogError, first_line

_AT_A_TIME = 5_000
_BUFFER = 64 * 1024
"""Bytes of a column that are read ahead: else each column of a compacted file is held whole."""


def read_events(file: LakePath, wanted: pa.Schema, table: str) -> Iterator[pa.RecordBatch]:
    """The events of one data file, piece by piece.

    Args:
        file: the file.
        wanted: the columns to read.
        table: the table that the events are about, which the file's folder says and the file does not.

    Raises:
        TornLogError: the file is gone, or none that can be read.
    """
    with (
        _damage_told(file),
        _memory_given_back(),
        open_for_arrow(file) as content,
        pq.ParquetFile(content, buffer_size=_BUFFER, pre_buffer=False) as data,
    ):
        columns = [name for name in wanted.names if name != "table"]
        for piece in data.iter_batches(_AT_A_TIME, columns=columns, use_threads=False):
            yield pa.record_batch([_column(piece, field, table) for field in wanted], schema=wanted)


@contextmanager
def _damage_told(file: LakePath) -> Iterator[None]:
    """Tell damage from trouble: of a disk it has a number, and of a store its own client tells it."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        is_trouble = isinstance(error, OSError) and error.errno not in (None, ENOENT)
        if is_trouble or not isinstance(file, Path):
            raise
        msg = f"{file}, a file of the ledger, cannot be read: {first_line(error)}\nRestore it from a backup."
        raise TornLogError(msg) from error


@contextmanager
def _memory_given_back() -> Iterator[None]:
    """Arrow's own allocator, and it serves only part of the reading whatever it is told, keeps what it was given back.

    A ledger of 100,000 files took 70 MB for the 5 MB that are in use at a time.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        before.release_unused()


def _column(piece: pa.RecordBatch, field: pa.Field, table: str) -> pa.Array:
    if field.name == "table":
        return pa.repeat(pa.scalar(table), len(piece))
    return piece.column(field.name).cast(field.type)

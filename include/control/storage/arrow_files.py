"""Single Parquet files under a lakehouse's root as Arrow reads them, on a disk and in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyarrow.fs import LocalFileSystem, S3FileSystem

from include.contracts.lake_path import LakePath, S3Path
from include.control.storage.s3_access import arrow_options, s3_client, said_plainly

_AT_ONCE = 1024**2
"""Smaller objects are read whole: Arrow asks for the end of a file and for each of its columns, one by one."""


@contextmanager
def open_for_arrow(file: LakePath) -> Iterator[pa.NativeFile]:
    """A data file of a table as Arrow reads it, wherever it wants: its name is never used for another content."""
    with LocalFileSystem().open_input_file(str(file)) if isinstance(file, Path) else _object(file) as content:
        yield content


def _object(file: S3Path) -> pa.NativeFile:
    whole = _small_object(file)
    if whole is not None:
        return pa.BufferReader(whole)
    return S3FileSystem(**arrow_options()).open_input_file(f"{file.bucket}/{file.key}")


@lru_cache(maxsize=64)
def _small_object(file: S3Path) -> bytes | None:
    """All of a small object, which is read once a process: data files of Delta never change."""
    with said_plainly(str(file)):
        begin = s3_client().get_object(Bucket=file.bucket, Key=file.key, Range=f"bytes=0-{_AT_ONCE - 1}")
        if begin["ContentLength"] < _AT_ONCE:
            return bytes(begin["Body"].read())
        begin["Body"].close()
    return None

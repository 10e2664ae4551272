"""Single Parquet files under a lakehouse's root as Arrow reads them, on a disk and in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow.fs import LocalFileSystem, S3FileSystem

from include.contracts.lake_path import LakePath, S3Path
from include.control.storage.content_cache import ContentCache
from include.control.storage.s3_access import arrow_options, s3_client, translate_storage_errors

_AT_ONCE = 1024**2
"""Smaller objects are read whole: Arrow asks for the end of a file and for each of its columns, one by one."""

_kept = ContentCache(8 * _AT_ONCE)
"""By their names alone: data files of Delta never change."""


@contextmanager
def open_for_arrow(file: LakePath) -> Iterator[pa.NativeFile]:
    """A data file of a table as Arrow reads it, wherever it wants: its name is never used for another content."""
    with LocalFileSystem().open_input_file(str(file)) if isinstance(file, Path) else _object(file) as content:
        yield content


def cache_content(file: LakePath, content: bytes) -> None:
    """Keep what was just written to a bucket: whoever wrote it often asks for it next."""
    if isinstance(file, S3Path) and len(content) < _AT_ONCE:
        _kept.keep(file, content)


def _object(file: S3Path) -> pa.NativeFile:
    known = _kept.get(file)
    if known is not None:
        return pa.BufferReader(known)
    with translate_storage_errors(str(file)):
        begin = s3_client().get_object(Bucket=file.bucket, Key=file.key, Range=f"bytes=0-{_AT_ONCE - 1}")
        if begin["ContentLength"] >= _AT_ONCE:
            begin["Body"].close()
            return S3FileSystem(**arrow_options()).open_input_file(f"{file.bucket}/{file.key}")
        content = bytes(begin["Body"].read())
    cache_content(file, content)
    return pa.BufferReader(content)

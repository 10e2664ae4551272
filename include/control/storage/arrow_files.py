"""Open single Parquet files for Arrow, in a folder or in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow.fs import LocalFileSystem, S3FileSystem

from include.contracts.lake_path import LakePath, S3Path
from include.control.storage.content_cache import ContentCache
from include.control.storage.s3_access import arrow_options, s3_client, translate_storage_errors

_WHOLE_BYTES = 1024**2
"""Smaller objects are read as a whole, since Arrow needs one request for the end of a file and one for each column."""

_contents = ContentCache(8 * _WHOLE_BYTES)
"""Without etags, since data files of Delta never change."""


@contextmanager
def open_for_arrow(file: LakePath) -> Iterator[pa.NativeFile]:
    """Open a data file of a Delta table, whose content never changes."""
    with LocalFileSystem().open_input_file(str(file)) if isinstance(file, Path) else _object(file) as content:
        yield content


def cache_content(file: LakePath, content: bytes) -> None:
    """Cache a small object that was just written, since its writer often reads it next."""
    if isinstance(file, S3Path) and len(content) < _WHOLE_BYTES:
        _contents.put(file, content)


def _object(file: S3Path) -> pa.NativeFile:
    cached = _contents.get(file)
    if cached is not None:
        return pa.BufferReader(cached)
    with translate_storage_errors(str(file)):
        answer = s3_client().get_object(Bucket=file.bucket, Key=file.key, Range=f"bytes=0-{_WHOLE_BYTES - 1}")
        if answer["ContentLength"] >= _WHOLE_BYTES:
            answer["Body"].close()
            return S3FileSystem(**arrow_options()).open_input_file(f"{file.bucket}/{file.key}")
        content = bytes(answer["Body"].read())
    cache_content(file, content)
    return pa.BufferReader(content)

"""Single Parquet files for Arrow, in a folder or in a bucket."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem

from millrace.contracts.lake_path import LakePath
from millrace.control.storage.content_cache import cache_content, cached_content
from millrace.control.storage.s3_access import arrow_options, s3_client, translate_storage_errors

_WHOLE_BYTES = 1024**2
"""Smaller objects are read as a whole, since Arrow needs one request for the end of a file and one for each column."""


def arrow_place(file: LakePath) -> tuple[FileSystem, str]:
    """Return the file system of a file, and its path there."""
    if isinstance(file, Path):
        return LocalFileSystem(), str(file)
    return S3FileSystem(**arrow_options()), f"{file.bucket}/{file.key}"


def open_for_arrow(file: LakePath) -> pa.NativeFile:
    """Open a data file of a Delta table, whose content never changes."""
    if isinstance(file, Path):
        return LocalFileSystem().open_input_file(str(file))
    if (cached := cached_content(file)) is not None:
        return pa.BufferReader(cached)
    with translate_storage_errors(str(file)):
        answer = s3_client().get_object(Bucket=file.bucket, Key=file.key, Range=f"bytes=0-{_WHOLE_BYTES - 1}")
        if answer["ContentLength"] >= _WHOLE_BYTES:
            answer["Body"].close()
            filesystem, place = arrow_place(file)
            return filesystem.open_input_file(place)
        content = bytes(answer["Body"].read())
    cache_content(file, content, answer["ETag"])
    return pa.BufferReader(content)

"""The data files of a table version as an Arrow dataset, which reads only the columns and row groups it needs."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem, SubTreeFileSystem

from include.contracts.lake_path import LakePath
from include.control.storage.s3_access import arrow_options


def dataset_of(delta: DeltaTable, path: LakePath) -> ds.Dataset:
    """Return the files of an open table at `path` as a dataset; its list of files never changes."""
    # Without a file system, delta-rs reads files through Python. Then Arrow's threads, which may still read when the
    # process ends, abort it or never let it end.
    return delta.to_pyarrow_dataset(filesystem=_files_below(path))


def _files_below(path: LakePath) -> FileSystem:
    if isinstance(path, Path):
        return SubTreeFileSystem(str(path.absolute()), LocalFileSystem())
    return SubTreeFileSystem(f"{path.bucket}/{path.key}", S3FileSystem(**arrow_options()))

"""The data files of a table version as an Arrow dataset, which reads only the columns and row groups it needs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem, SubTreeFileSystem

from include.contracts.lake_path import LakePath
from include.control.log.stored_tables import logged_files
from include.control.storage.s3_access import arrow_options
from include.errors import MisfitError

_IN_ORDER = (pa.types.is_integer, pa.types.is_date, pa.types.is_timestamp, pa.types.is_string)
"""The types that the log and Arrow order alike, and whose bounds in the log are not below or above the rows' own."""

_TRUNCATED = pa.scalar(1000, pa.duration("us"))
"""Spark cuts the bounds of times off after the millisecond."""


def dataset_of(delta: DeltaTable, path: LakePath) -> ds.Dataset:
    """Return the files of an open table at `path` as a dataset; its list of files never changes.

    The dataset of deltalake itself loses rows: of a file without a usable bound, such as NaN, it promises Arrow
    `c >= null` or `c <= NaN`, and Arrow skips the file. It also fails at dates that Python does not know.

    Raises:
        MisfitError: the files alone do not have the rows: there are deletion vectors, or columns with other names.
        TornLogError: the log has something that delta-rs cannot read.
    """
    protocol = delta.protocol()
    features = protocol.reader_features or (["columnMapping"] if protocol.min_reader_version == 2 else [])
    if unknown := sorted({*features} - {"timestampNtz"}):
        cause = f"{path} cannot be read by its files alone: it has the feature {', '.join(unknown)}"
        raise MisfitError(cause, "Read it by Spark, or drop the feature: ALTER TABLE ... DROP FEATURE ...")
    schema, files = pa.schema(delta.schema().to_arrow()), logged_files(delta, flatten=False)
    # Without a file system, delta-rs reads files through Python. Then Arrow's threads, which may still read when the
    # process ends, abort it or never let it end.
    file_system = _files_below(path)
    parquet = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True))
    fragments = [
        parquet.make_fragment(unquote(file), file_system, promise)
        for file, promise in zip(files["path"].to_pylist(), _promises(files), strict=True)
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, file_system)


def _files_below(path: LakePath) -> FileSystem:
    if isinstance(path, Path):
        return SubTreeFileSystem(str(path.absolute()), LocalFileSystem())
    return SubTreeFileSystem(f"{path.bucket}/{path.key}", S3FileSystem(**arrow_options()))


def _promises(files: pa.Table) -> list[ds.Expression]:
    """Return for each file what is true of all its rows, by which Arrow skips files without opening them."""
    promises = [ds.scalar(True)] * len(files)
    for name, values in _columns(files, "partition").items():
        column = ds.field(name)
        for at, value in enumerate(values):
            promises[at] &= column == value if value.is_valid else column.is_null()
    nulls, greatest = _columns(files, "null_count"), _columns(files, "max")
    for name, least in _columns(files, "min").items():
        if name not in greatest or not any(is_type(least.type) for is_type in _IN_ORDER):
            continue
        most = pc.add(greatest[name], _TRUNCATED) if pa.types.is_timestamp(least.type) else greatest[name]
        column, counts = ds.field(name), nulls[name].to_pylist() if name in nulls else [None] * len(files)
        for at, (low, high, null) in enumerate(zip(least, most, counts, strict=True)):
            bounds = [column >= low] * low.is_valid + [column <= high] * high.is_valid
            for bound in bounds:
                promises[at] &= bound if null == 0 else bound | column.is_null()
    return promises


def _columns(files: pa.Table, kind: str) -> dict[str, pa.Array]:
    """Return column -> its partition values or statistics of one kind, one for each file."""
    if kind not in files.column_names:
        return {}
    parts = files[kind].combine_chunks()
    return {field.name: pc.struct_field(parts, at) for at, field in enumerate(parts.type)}
